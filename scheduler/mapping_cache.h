// Mappings that earlier compilations found (`--cache DIR`).
//
// A question is all that a search's answer depends on: in words (objective, how it searches,
// target: the context) and in numbers (nest, residents, room). Files of a folder hold questions and
// answers of one context each; a compilation writes what is new to a file of its own, under a name
// made of its contents, so that any number of them may run at once. Nothing that is read is
// trusted: a file has a checksum and names its context in full, and an answer counts only if the
// mapping is legal and costs what the file says (Searcher).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/search.h"
#include "support/status.h"

namespace dla::scheduler {

class MappingCache {
 public:
  using Numbers = std::vector<int64_t>;

  struct Answer {
    Numbers kind;     // equal for layers of one class, whatever their sizes (KindOf)
    Numbers extents;  // of the nest's dimensions
    Mapping mapping;
    Certificate certificate;
    int64_t points = 0, evaluated = 0;
    int64_t cycles = 0, bus_bytes = 0;  // of the mapping
  };
  using Answers = std::map<Numbers, Answer>;  // by question

  // What became of the questions, for people.
  struct Use {
    int64_t found = 0, searched = 0;
    int64_t adapted = 0,
            illegal = 0;  // reuse: mappings of other sizes tried; not legal as they were
  };

  // `producer`: the program and its version; its answers count for no other. Reads nothing yet.
  MappingCache(std::string folder, std::string producer)
      : folder_(std::move(folder)), producer_(std::move(producer)) {}

  // The context of a search. Of the way to search: only what leads to the same answers.
  std::string ContextOf(const machine::Target& target, Objective objective,
                        const SearchOptions& options) const;
  // All known answers; reads the folder at the first question of a context. Valid until Add.
  const Answers& AnswersIn(const std::string& context);
  void Add(const std::string& context, const Numbers& question, Answer answer);
  // An answer turned out wrong; it is forgotten.
  void Refuse(const std::string& context, const Numbers& question, const std::string& why);

  // Writes what is new; makes the folder. kIo.
  Status Save();

  Use& use() { return use_; }
  // About files and answers that were ignored, at most a few.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Shelf {
    Answers answers;
    std::vector<Numbers> added;
  };

  Shelf& ShelfOf(const std::string& context);
  void ReadFolder(const std::string& context, Answers* answers);
  Status ReadOne(const std::string& path, const std::string& context, Answers* answers) const;
  Status Write(const std::string& context, const Shelf& shelf) const;
  void Warn(const std::string& text);

  const std::string folder_, producer_;
  std::map<std::string, Shelf> shelves_;
  Use use_;
  std::vector<std::string> warnings_;
};

// A layer's class and what is resident, without sizes: anchor, epilogue, element types, windows
// with their strides and dilations, whether there are groups.
std::vector<int64_t> KindOf(const ir::Nest& nest, const std::vector<int>& resident_in);

}  // namespace dla::scheduler
