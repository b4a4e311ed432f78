// Committed documents that are made from code: fails when the copy is old.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "machine/isa.h"
#include "machine/target_file.h"
#include "support/file.h"

namespace dla::machine {
namespace {

std::string Document(const std::string& path) {
  const auto text = ReadTextFile(std::string(DLA_SOURCE_DIR) + "/" + path);
  return text.ok() ? *text : text.status().message();
}

TEST(Docs, TheInstructionTableIsTheCodes) {
  const std::string table = InstructionTableMarkdown();
  EXPECT_NE(Document("docs/MACHINE.md").find(table), std::string::npos)
      << "docs/MACHINE.md must hold this table:\n"
      << table;
}

// Keys of a printed target, as paths without list indices.
void CollectFields(const nlohmann::json& json, const nlohmann::json& schema,
                   const std::string& path) {
  if (json.is_array()) {
    for (const auto& item : json) CollectFields(item, schema.value("items", schema), path);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (schema.contains("properties") && schema["properties"].contains(key)) {
      CollectFields(value, schema["properties"][key], path + "." + key);
    } else {
      EXPECT_TRUE(schema.contains("patternProperties")) << "no schema for " << path << "." << key;
    }
  }
}

TEST(Docs, SchemaAndReferenceKnowEveryFieldOfATarget) {
  auto target = LoadTarget("edge32", {});
  ASSERT_TRUE(target.ok());
  target->dram.bytes = 1;
  target->memories[0].bytes_per_cycle = Rational{};
  target->memories[0].energy_is_default = false;
  const auto json = nlohmann::json::parse(TargetJson(*target));
  const auto schema = nlohmann::json::parse(Document("targets/target.schema.json"));
  CollectFields(json, schema, "target");
  const std::string reference = Document("docs/TARGETS.md");
  std::function<void(const nlohmann::json&)> named = [&](const nlohmann::json& value) {
    for (const auto& item : value.items()) {
      if (value.is_object()) {
        EXPECT_NE(reference.find("`" + item.key() + "`"), std::string::npos) << item.key();
      }
      if (item.value().is_structured()) named(item.value());
    }
  };
  named(json);
}

}  // namespace
}  // namespace dla::machine
