// Searches to compare with: what they find, against a table of another program for 90 layers.
#include "scheduler/search/methods.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "machine/target_file.h"
#include "scheduler/layer_list.h"
#include "scheduler/map_layer.h"
#include "scheduler/predict.h"
#include "tests/scheduler/optima_table.h"

namespace dla::scheduler {
namespace {

TEST(SearchMethods, EarlyExitAndStridingFindWhatTheTableSays) {
  const std::vector<TableRow> layers = ReadTable("optima.csv");
  const std::vector<TableRow> found = ReadTable("early_exit.csv");
  ASSERT_EQ(found.size(), layers.size());
  const std::map<std::string, Grid> grids = {{"even", Grid::kEven}, {"array", Grid::kArray}};
  const std::map<std::string, Exit> exits = {{"not_fewer", Exit::kNotFewer},
                                             {"only_when_more", Exit::kOnlyWhenMore},
                                             {"not_fewer_innermost", Exit::kNotFewerInnermost}};
  const IdealMachine machine;
  for (size_t i = 0; i < layers.size(); ++i) {
    SCOPED_TRACE(layers[i].at("name"));
    ASSERT_EQ(found[i].at("name"), layers[i].at("name"));
    const Layer layer = LayerOf(layers[i]);
    for (const auto& [grid_name, grid] : grids) {
      const auto check = [&](const std::string& nest, const std::string& rule, Exit exit) {
        const std::string column =
            exit == Exit::kNever ? grid_name + "_optimum" : grid_name + "_" + nest + "_" + rule;
        if (found[i].count(column) == 0) return;  // the table has no such search
        const auto result = SearchGrid(layer, machine, grid, nest, exit);
        ASSERT_TRUE(result.has_value());
        EXPECT_EQ(result->bytes, Number(found[i], column)) << column;
      };
      // Full grids of large layers take seconds together; their optimum is in the table of S0.
      if (grid == Grid::kArray) check("GMCEF", "", Exit::kNever);
      for (const auto& [rule, exit] : exits) {
        if (grid == Grid::kEven && exit != Exit::kNotFewer) continue;
        check("GMCEF", rule, exit);
        check("FECMG", rule, exit);
      }
    }
  }
}

TEST(SearchMethods, ExhaustiveAndRandomNeverBeatTheOptimum) {
  const IdealMachine machine;
  int hits = 0;
  for (const TableRow& row : ReadTable("optima.csv")) {
    if (row.at("set") != "resnet18") continue;
    SCOPED_TRACE(row.at("name"));
    const Layer layer = LayerOf(row);
    const int64_t optimum = Number(row, "s0_separate");
    const auto random = SearchRandomly(layer, machine, 20000, 7);
    if (random) {
      EXPECT_GE(random->bytes, optimum);
      EXPECT_EQ(random->bytes, SearchRandomly(layer, machine, 20000, 7)->bytes);
      EXPECT_EQ(random->points, 60000);
      hits += random->bytes == optimum ? 1 : 0;
    }
    if (layer.R > 1 && layer.E > 14) continue;  // a fraction of a second each
    EXPECT_EQ(SearchExhaustively(layer, machine)->bytes, optimum);
  }
  EXPECT_LT(hits, 21);
}

// Mappings of every method cost what they say, in the compiler's cost model.
TEST(MapLayer, MappingsCostWhatTheSearchSays) {
  const Layer layer = {
      .M = 40, .C = 48, .E = 14, .F = 14, .R = 3, .S = 3, .pad = 1, .H = 14, .W = 14};
  machine::Target target = *machine::LoadTarget("edge32-ideal", {});
  for (machine::Memory& memory : target.memories) memory.bytes = 20000;
  const auto machine = IdealMachineOf(target, ElementType::kI8);
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->pool_bytes, 0);
  int64_t exact = 0;
  for (const char* search :
       {"exact", "exhaustive", "strided", "early-exit", "dnnopt", "random:5000"}) {
    MapOptions options = {.objective = Objective::kTraffic, .space = Space::kS0};
    ASSERT_TRUE(ParseSearchMethod(search, &options).ok());
    auto mapped = MapLayer(layer, target, options);
    ASSERT_TRUE(mapped.ok()) << search << ": " << mapped.status().message();
    AddCosts(layer, target, ElementType::kI8, &*mapped);
    const int64_t bytes = mapped->predicted.dram_bytes();
    if (exact == 0) exact = bytes;
    EXPECT_GE(bytes, exact) << search;
    EXPECT_GE(bytes, mapped->compulsory_bytes) << search;
    EXPECT_GE(mapped->predicted.cycles, mapped->roofline_cycles) << search;
    EXPECT_EQ(mapped->proven,
              std::string(search) == "exact" || std::string(search) == "exhaustive");
    if (mapped->proven) {
      EXPECT_EQ(bytes, exact) << search;
    }
  }
  EXPECT_EQ(exact, LeastBytes(layer, *machine, Space::kS0, Buffers::kDouble)->bytes);
}

TEST(MapLayer, TargetsThatAreNotIdealTakeTheCompilersSearch) {
  const machine::Target target = *machine::LoadTarget("edge32", {});
  EXPECT_FALSE(IdealMachineOf(target, ElementType::kI8).has_value());
  EXPECT_TRUE(IdealMachineOf(*machine::LoadTarget("edge32-ideal-unified", {}), ElementType::kI8)
                  ->pool_bytes == 196608);
  const Layer layer = {.M = 8, .C = 8, .E = 6, .F = 6, .H = 6, .W = 6};
  MapOptions options = {.type = ElementType::kF32};
  const auto mapped = MapLayer(layer, target, options);
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  EXPECT_TRUE(mapped->proven);
  options.method = SearchMethod::kExhaustive;
  options.objective = Objective::kTraffic, options.space = Space::kS0;
  EXPECT_EQ(MapLayer(layer, target, options).status().code(), ErrorCode::kUsage);
}

// Spaces and rules of the compiler's search; energy and their product with cycles are proven, too.
TEST(MapLayer, TheCompilersSearchHasItsOwnSpacesAndRules) {
  const machine::Target target = *machine::LoadTarget("edge32", {});
  const Layer layer = {
      .M = 40, .C = 48, .E = 14, .F = 14, .R = 3, .S = 3, .pad = 1, .H = 14, .W = 14};
  const auto energy = [&](const MapOptions& options) {
    auto mapped = MapLayer(layer, target, options);
    EXPECT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_TRUE(mapped->proven);
    AddCosts(layer, target, ElementType::kI8, &*mapped);
    const double pj = EnergyPj(mapped->predicted, target, ElementType::kI8);
    return options.objective == Objective::kEnergy
               ? pj
               : pj * static_cast<double>(mapped->predicted.cycles);
  };
  for (const Objective objective : {Objective::kEnergy, Objective::kEdp}) {
    const MapOptions plain = {.objective = objective};
    const double least = energy(plain);
    for (const char* rule : {"capacity", "fill", "serial", "credit"}) {
      MapOptions without = plain;
      ASSERT_TRUE(DisableRules({rule}, &without).ok());
      EXPECT_DOUBLE_EQ(energy(without), least) << rule;
    }
    for (const char* space : {"even", "strided"}) {
      MapOptions smaller = plain;
      ASSERT_TRUE(ParseSpace(space, &smaller).ok());
      EXPECT_GE(energy(smaller), least) << space;
      smaller.objective = Objective::kTraffic;
      const auto ideal = MapLayer(layer, *machine::LoadTarget("edge32-ideal", {}), smaller);
      EXPECT_EQ(ideal.status().code(), ErrorCode::kUsage) << space;
    }
  }
  MapOptions options;
  EXPECT_EQ(DisableRules({"none"}, &options).code(), ErrorCode::kUsage);
}

// The compiler's space has every mapping of S0 with single buffers, and none that rolls: its
// optimum is between those of S1 and S0.
TEST(MapLayer, TheCompilersOptimumIsBetweenThoseOfSmallerAndLargerSpaces) {
  const machine::Target target = *machine::LoadTarget("edge32-ideal", {});
  for (const TableRow& row : ReadTable("optima.csv")) {
    if (row.at("set") != "resnet18") continue;
    SCOPED_TRACE(row.at("name"));
    const Layer layer = LayerOf(row);
    const MapOptions options = {.objective = Objective::kTraffic,
                                .method = SearchMethod::kCompiler};
    auto mapped = MapLayer(layer, target, options);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    AddCosts(layer, target, ElementType::kI8, &*mapped);
    EXPECT_TRUE(mapped->proven);
    EXPECT_GE(mapped->predicted.dram_bytes(), Number(row, "s1_separate_single"));
    const auto s0 =
        LeastBytes(layer, *IdealMachineOf(target, ElementType::kI8), Space::kS0, Buffers::kSingle);
    EXPECT_LE(mapped->predicted.dram_bytes(), s0->bytes);
  }
}

TEST(LayerList, ReadsLinesAndSaysWhatIsWrong) {
  const auto layers = ParseLayerList(
      "# a comment\n\nconv1 net conv 1 1 64 3 112 112 7 7 2 1 3 2\r\n"
      "fc net matmul 1 1 1000 512 1 1 1 1 1 1 0 1 1 1\n");
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_EQ((*layers)[0].layer.H, 224);
  EXPECT_EQ((*layers)[0].count, 2);
  EXPECT_EQ((*layers)[1].layer.W, 1);
  const auto error = [](const std::string& text) {
    const auto list = ParseLayerList(text);
    EXPECT_EQ(list.status().code(), ErrorCode::kMalformed);
    return list.status().message();
  };
  const auto says = [&](const std::string& text, const std::string& part) {
    const std::string message = error(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says("", "no layers");
  says("# nothing\n", "no layers");
  says("a b conv 1 1\n", "line 1: 5 fields");
  says("\na n conv 1 1 x 3 8 8 3 3 1 1 1 1\n", "line 2: M: 'x'");
  says("a n conv 0 1 4 3 8 8 3 3 1 1 1 1\n", "line 1: N: '0'");
  says("a n conv 1 1 99999999999999999999 3 8 8 3 3 1 1 1 1\n", "M: ");
  says("a n pool 1 1 4 3 8 8 3 3 1 1 1 1\n", "kind: 'pool'");
  says("a n dwconv 1 8 2 1 8 8 3 3 1 1 1 1\n", "M = C = 1");
  says("a n matmul 1 1 4 4 8 8 1 1 1 1 0 1\n", "F = R = S = 1");
  says("a n conv 1 1 4 4 8 8 3 3 1 1 1 1 3 8\n", "H is 3");
  says("a n conv 1 1 4 4 2 2 1 1 1 1 5 1\n", "no real input");
  says("a n conv 65536 65536 65536 4 8 8 3 3 1 1 1 1\n", "multiplications");
  says("a n conv 1 1 1 1 65536 1 65536 1 1 1 0 1\n", "2^20");
  says("a n conv 1 1 70000 1 8 8 3 3 1 1 1 1\n", "M: '70000'");
  says("a n conv 1 1 4 4 8 8 3 3 1 1 1 1\na n conv 1 1 4 4 8 8 3 3 1 1 1 1\n", "line 2: a second");
}

}  // namespace
}  // namespace dla::scheduler
