// Target files: every message beside the text that provokes it, inheritance, printing, --mem.
#include "machine/target_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "machine/bundled_targets.h"

namespace dla::machine {
namespace {

Result<Target> Parse(const std::string& text) {
  return ParseTarget(text, "edge.json",
                     [](const std::string& name) { return LoadTarget(name, {}); });
}

struct BadTarget {
  const char* text;
  const char* message;
};

TEST(TargetFile, BadFilesSayWhereWhatAndWhatWouldBeRight) {
  const BadTarget cases[] = {
      {R"({"inherit": "edge32", "memories": [{"name": "a", "bytes": 64, "holds": ["input"]},
           {"name": "b", "bytes": 0, "holds": ["weight"]}]})",
       "edge.json: memories[1].bytes: 0 is not a size (1 to 1099511627776 bytes)"},
      {R"({"inherit": "edge32", "dram": {"byte_per_cycle": 3}})",
       "edge.json: dram.byte_per_cycle: there is no such field; did you mean 'bytes_per_cycle'?"},
      {R"({"inherit": "edge32", "colour": 3})", "edge.json: colour: there is no such field"},
      {R"({"inherit": "edge32", "dram": {"bytes_per_cycle": "64/0"}})",
       "edge.json: dram.bytes_per_cycle: \"64/0\" is not a rate (a number > 0 with up to 6 "
       "decimals, or a fraction such as \"64/3\", parts up to 1000000)"},
      {R"({"inherit": "edge32", "dram": {"bytes_per_cycle": -1}})",
       "edge.json: dram.bytes_per_cycle: -1 is not a rate (a number > 0 with up to 6 decimals, or "
       "a fraction such as \"64/3\", parts up to 1000000)"},
      {R"({"inherit": "edge32", "clock_mhz": "fast"})",
       "edge.json: clock_mhz: \"fast\" is not a clock (1 to 1000000 MHz)"},
      {R"({"inherit": "edge32", "array": {"dataflow": "xs"}})",
       "edge.json: array.dataflow: 'xs' is no dataflow (os, ws, is, spatial)"},
      {R"({"inherit": "edge32", "array": {"rates": {"u8,i8": 1}}})",
       "edge.json: array.accumulator: has no entry for 'u8', which array.rates has"},
      {R"({"inherit": "edge32", "links": [{"from": "input", "to": "ouput", "bytes_per_cycle": 1}]})",
       "edge.json: links[0].to: there is no memory 'ouput'; did you mean 'output'?"},
      {R"({"inherit": "edge32", "vector": {"op_cycles": {"exponent": 1}}})",
       "edge.json: vector.op_cycles.exponent: there is no such field"},
      {R"({"inherit": "edge32", "output_stage": ["tanh"]})",
       "edge.json: output_stage[0]: 'tanh' is nothing an output stage does (bias, scale, clamp, "
       "relu, leaky_relu, table)"},
      {R"({"inherit": "edge33"})",
       "edge.json: inherit: there is no target 'edge33'; did you mean 'edge32'?"},
      {R"({"inherit": "edge32", "memories": [{"name": "a", "bytes": 64, "holds": ["pool"]}]})",
       "edge.json: memories[0].holds[0]: 'pool' is no operand class (input, weight, partial, "
       "output, vector)"},
      {R"({"inherit": "edge32", "memories": [{"name": "a", "bytes": 64, "holds": ["input"],
           "align_bytes": 24}]})",
       "edge.json: memories[0].align_bytes: 24 is not a power of two"},
      {R"({"inherit": "edge32", "memories": [{"name": "a", "bytes": 1e3, "holds": ["input"]}]})",
       "edge.json: memories[0].bytes: 1000.0 is not a size (1 to 1099511627776 bytes)"},
      {R"([1])", "edge.json: the file: [1] is not an object {...}"},
      {R"({})",
       "edge.json: memories: is missing; name the scratchpads, or a target to \"inherit\" from"},
  };
  for (const BadTarget& bad : cases) {
    const auto target = Parse(bad.text);
    ASSERT_FALSE(target.ok()) << bad.text;
    EXPECT_EQ(target.status().message(), bad.message);
    EXPECT_EQ(target.status().code(), ErrorCode::kMalformed);
  }
  const auto deep = Parse(std::string(500000, '['));
  EXPECT_EQ(deep.status().message(), "edge.json: is nested more than 32 levels deep");
  const auto not_json = Parse("{\n \"name\": }");
  ASSERT_FALSE(not_json.ok());
  EXPECT_EQ(not_json.status().message().substr(0, 55),
            "edge.json: is not JSON: parse error at line 2, column 1");
}

TEST(TargetFile, ReportsAllErrorsOfAFileAtOnce) {
  const auto target = Parse(
      R"({"inherit": "edge32", "clock_mhz": 0, "dram": {"burst_bytes": 0}, "x": 1, "host": 5})");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().message(),
            "edge.json: clock_mhz: 0 is not a clock (1 to 1000000 MHz)\n"
            "edge.json: dram.burst_bytes: 0 is not a burst size (1 to 65536 bytes)\n"
            "edge.json: host: 5 is not an object {...}\n"
            "edge.json: x: there is no such field");
}

TEST(TargetFile, EveryBundledTargetLoadsAndPrintsBackToItself) {
  ASSERT_EQ(BundledTargets().size(), 10u);
  for (const BundledTarget& bundled : BundledTargets()) {
    const auto target = LoadTarget(std::string(bundled.name), {});
    ASSERT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ(target->name, bundled.name);
    EXPECT_FALSE(target->comment.empty());
    const std::string text = TargetJson(*target);
    const auto again = ParseTarget(text, "x.json", [](const std::string&) {
      return Result<Target>(Usage("must not inherit"));
    });
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, *target);
    EXPECT_EQ(TargetJson(*again), text);
  }
}

TEST(TargetFile, InheritanceMergesObjectsAndReplacesLists) {
  const auto edge = LoadTarget("edge32", {});
  const auto unified = LoadTarget("edge32-unified", {});
  const auto onsram = LoadTarget("onsram", {});
  ASSERT_TRUE(edge.ok() && unified.ok() && onsram.ok());
  EXPECT_EQ(edge->links.size(), 4u);
  EXPECT_EQ(unified->links.size(), 0u);
  EXPECT_EQ(unified->memories.size(), 1u);
  EXPECT_EQ(unified->dram, edge->dram);
  EXPECT_EQ(onsram->dram.bytes_per_cycle, (Rational{64, 3}));
  EXPECT_EQ(onsram->dram.energy_pj_per_byte, 160);
  EXPECT_EQ(onsram->vector.startup_cycles, 8);
  EXPECT_EQ((edge->array.rates.at({ElementType::kF32, ElementType::kF32})), (Rational{1, 4}));
  EXPECT_EQ(CyclesAtRate(100, edge->array.rates.at({ElementType::kF32, ElementType::kF32})), 400);
}

TEST(TargetFile, RatesAreKeptExactly) {
  const auto target = Parse(R"({"inherit": "edge32", "dram": {"bytes_per_cycle": 0.125},
                                "host": {"bytes_per_cycle": "6/4"}})");
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target->dram.bytes_per_cycle, (Rational{1, 8}));
  EXPECT_EQ(target->host.bytes_per_cycle, (Rational{3, 2}));
}

TEST(TargetFile, CirclesAndFoldersAreResolved) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / Concat("target_file_test_", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.json") << R"({"inherit": "b"})";
  std::ofstream(folder / "b.json") << R"({"inherit": "a"})";
  std::ofstream(folder / "edge32.json") << R"({"inherit": "edge32", "clock_mhz": 7})";
  const auto circle = LoadTarget("a", {folder.string()});
  ASSERT_FALSE(circle.ok());
  EXPECT_EQ(circle.status().code(), ErrorCode::kMalformed);
  EXPECT_NE(circle.status().message().find("inherit from each other in a circle"),
            std::string::npos);
  const auto hidden = LoadTarget("edge32", {folder.string()});
  ASSERT_TRUE(hidden.ok()) << hidden.status().message();
  EXPECT_EQ(hidden->clock_mhz, 7);
  const auto by_path = LoadTarget((folder / "edge32.json").string(), {});
  ASSERT_TRUE(by_path.ok()) << by_path.status().message();
  EXPECT_EQ(by_path->clock_mhz, 7);
  EXPECT_EQ(LoadTarget("nothing/here.json", {}).status().code(), ErrorCode::kIo);
  EXPECT_EQ(LoadTarget("edgy32", {}).status().message(),
            "there is no target 'edgy32'; did you mean 'edge32'?");
  EXPECT_EQ(LoadTarget("edgy32", {}).status().code(), ErrorCode::kUsage);
  std::filesystem::remove_all(folder);
}

TEST(TargetFile, OverrideMemoryChangesOneSizeAndItsDefaultEnergy) {
  auto target = LoadTarget("edge32", {});
  ASSERT_TRUE(target.ok());
  EXPECT_TRUE(OverrideMemory(&*target, "weight=32K").ok());
  EXPECT_EQ(target->memories[1].bytes, 32768);
  EXPECT_DOUBLE_EQ(target->memories[1].energy_pj_per_byte, 2.5);
  EXPECT_EQ(target->memories[0].bytes, 65536);
  EXPECT_TRUE(OverrideMemory(&*target, "weight=2MiB").ok());
  EXPECT_EQ(target->memories[1].bytes, 2097152);
  EXPECT_EQ(OverrideMemory(&*target, "wieght=1").message(),
            "'edge32' has no memory 'wieght'; it has input, weight, output");
  EXPECT_EQ(OverrideMemory(&*target, "weight=0").message(),
            "weight: '0' is not a size (1 to 1099511627776 bytes; K and KiB are 1024, M and MiB "
            "1048576)");
  EXPECT_EQ(OverrideMemory(&*target, "weight").message(),
            "'weight' is not NAME=BYTES, as in pool=64K");
  for (const char* bad : {"weight=", "weight=1G", "weight=-4", "weight=9999999999999M"}) {
    EXPECT_EQ(OverrideMemory(&*target, bad).code(), ErrorCode::kUsage) << bad;
  }
}

}  // namespace
}  // namespace dla::machine
