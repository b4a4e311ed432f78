// schedule.json read back: whole, partial, edited and illegal.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "machine/assembly.h"
#include "scheduler/given_schedule.h"
#include "scheduler/schedule_json.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

using Json = nlohmann::ordered_json;

const Bundled kModel = BundledModels()[1];

Result<Compiled> CompileWith(const std::string& target, const scheduler::GivenSchedule* given,
                             bool slices = true) {
  CompileOptions options = {.import = kModel.import, .target = target};
  options.schedule.given = given;
  options.schedule.slices = slices;
  return CompileModel(BundledPath(kModel.name, "model.onnx"), options);
}

Json ScheduleOf(const Compiled& compiled) {
  Json json = Json::parse(scheduler::ScheduleJson(compiled.schedule));
  for (Json& group : json["groups"]) group.erase("search");
  return json;
}

TEST(GivenSchedule, RoundTripsWhole) {
  for (const char* target : {"edge32", "edge32-unified"}) {
    const Result<Compiled> first = CompileWith(target, nullptr);
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(first->schedule.residents.empty());
    const auto given = scheduler::ParseGivenSchedule(ScheduleOf(*first).dump());
    ASSERT_TRUE(given.ok()) << given.status().message();
    // Of the groups of a cascade, the file's stripes say how they run.
    size_t in_cascades = 0;
    for (const scheduler::ScheduledGroup& group : first->schedule.groups) {
      in_cascades += group.cascade >= 0 ? 1 : 0;
    }
    EXPECT_EQ(given->groups.size() + in_cascades, first->schedule.groups.size());
    const Result<Compiled> second = CompileWith(target, &*given);
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_EQ(ScheduleOf(*first), ScheduleOf(*second));
    EXPECT_EQ(machine::Disassemble(first->program), machine::Disassemble(second->program));
  }
}

// One edited group in a file of its own: it gets its mapping, the program still computes the model.
TEST(GivenSchedule, TakesPartOfASchedule) {
  const Result<Compiled> first = CompileWith("edge32", nullptr, /*slices=*/false);
  ASSERT_TRUE(first.ok());
  Json group = ScheduleOf(*first)["groups"][0];
  group["mapping"]["blocks"]["M"] = 3;
  group["mapping"]["order"] = {"M"};
  for (const char* dimension : {"C", "E", "F", "R", "S"}) {
    group["mapping"]["blocks"][dimension] = group["nest"]["dimensions"][dimension];
  }
  group["mapping"]["blocks"]["E"] = 2;
  group["mapping"]["order"] = {"M", "E"};
  const auto given = scheduler::ParseGivenSchedule(Json({{"groups", {group}}}).dump());
  ASSERT_TRUE(given.ok()) << given.status().message();
  const Result<Compiled> second = CompileWith("edge32", &*given);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(ScheduleOf(*second)["groups"][0]["mapping"]["order"], Json({"M", "E"}));
  const auto inputs = ReadNpz(BundledPath(kModel.name, "inputs.npz"));
  const auto expected = ReadNpz(BundledPath(kModel.name, "expected.npz"));
  ASSERT_TRUE(inputs.ok() && expected.ok());
  const Result<Outcome> outcome = RunCompiled(*second, *inputs, {.check = true});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_LT(RelativeError(outcome->outputs.at((*expected)[0].name), (*expected)[0]), 1e-5);
  ExpectAsPredicted(*second, outcome->result);
}

struct IllegalEdit {
  const char* name;
  void (*edit)(Json* schedule);
  const char* message;
};

void PrintTo(const IllegalEdit& edit, std::ostream* out) { *out << edit.name; }

class IllegalSchedule : public ::testing::TestWithParam<IllegalEdit> {};

TEST_P(IllegalSchedule, SaysWhy) {
  const Result<Compiled> first = CompileWith("edge32", nullptr, false);  // whole groups
  ASSERT_TRUE(first.ok());
  Json json = ScheduleOf(*first);
  GetParam().edit(&json);
  const auto given = scheduler::ParseGivenSchedule(json.dump());
  const Status status = given.ok() ? CompileWith("edge32", &*given).status() : given.status();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos) << status.message();
}

std::string EditName(const ::testing::TestParamInfo<IllegalEdit>& parameter) {
  return parameter.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Edits, IllegalSchedule,
    ::testing::Values(
        IllegalEdit{"UnknownGroup", [](Json* s) { (*s)["groups"][0]["name"] = "nothing"; },
                    "group 'nothing': the model has no group of that name"},
        IllegalEdit{"UnknownDimension",
                    [](Json* s) { (*s)["groups"][0]["mapping"]["blocks"]["Q"] = 1; },
                    "there is no dimension 'Q'"},
        IllegalEdit{"BlockTooLarge",
                    [](Json* s) { (*s)["groups"][0]["mapping"]["blocks"]["M"] = 1000; },
                    "block 1000 of M is not from 1 to"},
        IllegalEdit{"OrderIncomplete",
                    [](Json* s) {
                      (*s)["groups"][0]["mapping"]["blocks"]["M"] = 1;
                      (*s)["groups"][0]["mapping"]["order"] = Json::array();
                    },
                    "it must list exactly the dimensions"},
        IllegalEdit{"OrderTwice",
                    [](Json* s) {
                      (*s)["groups"][0]["mapping"]["order"] = {"M", "M"};
                    },
                    "'M' is listed twice"},
        IllegalEdit{
            "UnknownMemory",
            [](Json* s) { (*s)["groups"][0]["mapping"]["operands"][0]["memory"] = "nowhere"; },
            "there is no scratchpad 'nowhere'"},
        IllegalEdit{
            "WrongClass",
            [](Json* s) { (*s)["groups"][0]["mapping"]["operands"][0]["memory"] = "weight"; },
            "'weight' does not hold input"},
        IllegalEdit{"DoesNotFit",
                    [](Json* s) {
                      Json& mapping = (*s)["groups"][0]["mapping"];
                      mapping["blocks"] = (*s)["groups"][0]["nest"]["dimensions"];
                      mapping["order"] = Json::array();
                    },
                    "', which has 65536"},
        IllegalEdit{"ValueCannotStay",
                    [](Json* s) {
                      (*s)["values"].push_back({{"name", "x"}, {"memory", "input"}});
                    },
                    "value 'x' cannot stay in 'input'"},
        IllegalEdit{"NotResident", [](Json* s) { (*s)["values"] = Json::array(); },
                    "does not agree with 'values'"},
        IllegalEdit{"NoBlocks", [](Json* s) { (*s)["groups"][0]["mapping"].erase("blocks"); },
                    "blocks: an object"}),
    EditName);

TEST(GivenSchedule, RefusesWhatIsNoSchedule) {
  for (const char* text : {"", "[]", "{", "{\"groups\": 1}", "{\"groups\": [{}]}",
                           "{\"values\": [{\"name\": 1}]}", "{\"values\": {}}"}) {
    const auto given = scheduler::ParseGivenSchedule(text);
    ASSERT_FALSE(given.ok()) << text;
    EXPECT_EQ(given.status().code(), ErrorCode::kMalformed);
  }
}

}  // namespace
}  // namespace dla::testing
