// Mappings that the user gives: each way in which one can be illegal, and what is said about it.
#include "scheduler/given_schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "machine/target_file.h"
#include "scheduler/layer.h"
#include "scheduler/phases.h"

namespace dla::scheduler {
namespace {

const machine::Target kTarget = *machine::LoadTarget("edge32", {});

ir::Nest Convolution() {
  return NestOf({.M = 64, .C = 32, .E = 14, .F = 14, .R = 3, .S = 3, .pad = 1, .H = 14, .W = 14},
                ElementType::kF32);
}

// A legal mapping of it.
GivenMapping Legal() {
  GivenMapping given;
  given.blocks = {{"M", 16}, {"E", 7}};
  given.order = {"M", "E"};
  given.operands = {{"", "input", "double", ""},
                    {"", "weight", "double", ""},
                    {"", "output", "drained in place", ""},
                    {"", "output", "double", ""}};
  return given;
}

std::string Fault(const ir::Nest& nest, const GivenMapping& given) {
  const Result<Mapping> mapping = ResolveMapping(given, nest, kTarget, {0, 0, 0});
  if (mapping.ok()) return "";
  EXPECT_EQ(mapping.status().code(), ErrorCode::kUsage);
  return mapping.status().message();
}

TEST(GivenMapping, ALegalOneIsTaken) {
  const Result<Mapping> mapping = ResolveMapping(Legal(), Convolution(), kTarget, {0, 0, 0});
  ASSERT_TRUE(mapping.ok()) << mapping.status().message();
  EXPECT_EQ(mapping->block, std::vector<int64_t>({1, 1, 16, 32, 7, 14, 3, 3}));
  EXPECT_EQ(mapping->order, std::vector<int>({2, 4}));
}

TEST(GivenMapping, EveryIllegalOneIsRefusedWithTheReason) {
  struct Case {
    std::function<void(GivenMapping*)> edit;
    const char* message;
  };
  const Case cases[] = {
      {[](GivenMapping* g) { g->blocks["Q"] = 1; }, "there is no dimension 'Q'"},
      {[](GivenMapping* g) { g->blocks["M"] = 0; }, "block 0 of M is not from 1 to 64"},
      {[](GivenMapping* g) { g->blocks["M"] = 65; }, "block 65 of M is not from 1 to 64"},
      {[](GivenMapping* g) { g->order = {"M"}; }, "missing: E"},
      {[](GivenMapping* g) {
         g->order = {"M", "E", "C"};
       },
       "not cut: C"},
      {[](GivenMapping* g) {
         g->order = {"M", "M"};
       },
       "'M' is listed twice"},
      {[](GivenMapping* g) {
         g->order = {"M", "Z"};
       },
       "order: there is no dimension 'Z'"},
      {[](GivenMapping* g) { g->operands.pop_back(); }, "3 are listed, the group has 4"},
      {[](GivenMapping* g) { g->operands[0].memory = "cache"; }, "there is no scratchpad 'cache'"},
      {[](GivenMapping* g) { g->operands[0].memory = "weight"; }, "'weight' does not hold input"},
      {[](GivenMapping* g) { g->operands[3].memory = "weight"; }, "'weight' does not hold partial"},
      {[](GivenMapping* g) { g->operands[0].buffers = "triple"; }, "buffers 'triple': double, "},
      {[](GivenMapping* g) { g->operands[3].buffers = "resident"; },
       "the accumulators' buffers are 'double' or 'single', not 'resident'"},
      {[](GivenMapping* g) { g->operands[1].buffers = "drained in place"; },
       "only the output of an array group can be drained in place"},
      {[](GivenMapping* g) { g->operands[2].memory = "input"; },
       "in the scratchpad of its accumulators"},
      {[](GivenMapping* g) {
         g->operands[1].buffers = "moved";
         g->operands[1].from = "weight";
       },
       "there is no link from 'weight' to 'weight'"},
      {[](GivenMapping* g) {
         g->blocks = {};
         g->order = {};
       },
       "bytes of 'weight', which has 65536"},
  };
  for (const Case& c : cases) {
    GivenMapping given = Legal();
    c.edit(&given);
    const std::string fault = Fault(Convolution(), given);
    EXPECT_NE(fault.find(c.message), std::string::npos) << "'" << fault << "' lacks " << c.message;
  }
}

// Rows of 40 elements, summed.
ir::Nest Sums() {
  ir::Nest nest;
  nest.dimensions = {{"d0", 8}, {"d1", 40}};
  const ir::Axis rows = {.terms = {{.dimension = 0}}, .bound = 8, .stride = 40};
  const ir::Axis columns = {.terms = {{.dimension = 1}}, .bound = 40, .stride = 1};
  ir::Operand in = {
      .cls = OperandClass::kVector, .type = ElementType::kF32, .axes = {rows, columns}};
  ir::Operand out = {.cls = OperandClass::kVector, .type = ElementType::kF32, .axes = {rows}};
  out.axes[0].stride = 1;
  nest.operands = {in, out};
  nest.program.ops = {{.op = MicroOp::kLoad, .operand = 0},
                      {.op = MicroOp::kReduceSum, .argument = {0}}};
  return nest;
}

TEST(GivenMapping, ReductionsOfTheVectorUnitStayWhole) {
  GivenMapping given;
  given.blocks = {{"d1", 8}};
  given.order = {"d1"};
  given.operands = {{"", "input", "double", ""}, {"", "output", "double", ""}};
  EXPECT_NE(Fault(Sums(), given).find("d1 is reduced over by the vector unit and cannot be cut"),
            std::string::npos);
}

TEST(GivenMapping, PassesLieOutsideOfWhatIsReduced) {
  const std::optional<ir::Nest> cut = CutReductions(Sums());
  ASSERT_TRUE(cut.has_value());
  const std::string pass = cut->dimensions[static_cast<size_t>(cut->pass_dimension)].name;
  const bool several = cut->dimensions[static_cast<size_t>(cut->pass_dimension)].extent > 1;
  GivenMapping given;
  given.blocks = {{"d0", 4}, {"d1", 8}, {pass, 1}};
  given.operands.assign(cut->operands.size(), {"", "input", "double", ""});
  given.order = {"d1", "d0"};
  if (several) given.order.push_back(pass);
  EXPECT_NE(Fault(*cut, given).find("'d0' must be further out"), std::string::npos)
      << Fault(*cut, given);
  given.order =
      several ? std::vector<std::string>{"d0", pass, "d1"} : std::vector<std::string>{"d0", "d1"};
  EXPECT_EQ(Fault(*cut, given), "");
}

}  // namespace
}  // namespace dla::scheduler
