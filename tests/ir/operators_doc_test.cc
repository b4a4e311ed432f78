// docs/OPERATORS.md is what the operator table says. To bring it up to date, run this test with
// --gtest_also_run_disabled_tests --gtest_filter=*WriteOperators.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/op.h"

namespace dla::ir {
namespace {

const char kPath[] = DLA_SOURCE_DIR "/docs/OPERATORS.md";

TEST(OperatorsDocument, IsUpToDate) {
  std::ifstream file(kPath, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), OperatorsMarkdown());
}

TEST(OperatorsDocument, DISABLED_WriteOperators) {
  std::ofstream file(kPath, std::ios::binary);
  file << OperatorsMarkdown();
  EXPECT_TRUE(file.good());
}

}  // namespace
}  // namespace dla::ir
