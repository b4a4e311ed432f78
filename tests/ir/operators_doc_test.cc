// docs/OPERATORS.md is what the operator table says; scripts/update_golden brings it up to date.
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

}  // namespace
}  // namespace dla::ir
