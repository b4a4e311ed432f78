#include "machine/memory_map.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "support/status.h"

namespace dla::machine {
namespace {

// Bytes of a memory that are in use in a group: the union of its buffers' intervals.
int64_t UsedBytes(const Program& program, size_t memory, int64_t group) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const BufferUse& buffer : program.buffers) {
    if (buffer.memory == memory && buffer.first_group <= group && group < buffer.end_group) {
      intervals.emplace_back(buffer.address, buffer.address + buffer.bytes);
    }
  }
  std::sort(intervals.begin(), intervals.end());
  int64_t used = 0, end = 0;
  for (const auto& [first, last] : intervals) {
    used += std::max<int64_t>(last - std::max(first, end), 0);
    end = std::max(end, last);
  }
  return used;
}

struct Peak {
  int64_t bytes = 0, group = 0;
};

Peak PeakOf(const Program& program, size_t memory) {
  Peak peak;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const int64_t used = UsedBytes(program, memory, static_cast<int64_t>(g));
    if (used > peak.bytes) peak = {used, static_cast<int64_t>(g)};
  }
  return peak;
}

std::vector<const BufferUse*> BuffersIn(const Program& program, size_t memory) {
  std::vector<const BufferUse*> buffers;
  for (const BufferUse& buffer : program.buffers) {
    if (buffer.memory == memory) buffers.push_back(&buffer);
  }
  return buffers;
}

// The letters go round.
std::vector<char> LettersOf(const std::vector<const BufferUse*>& buffers) {
  std::vector<char> letters;
  int capital = 0, small = 0;
  for (const BufferUse* b : buffers) {
    const bool stays = b->end_group - b->first_group > 1;
    int& next = stays ? capital : small;
    letters.push_back(static_cast<char>((stays ? 'A' : 'a') + next++ % 26));
  }
  return letters;
}

// One memory as rows of letters: each cell has the buffer that covers most of it.
class Picture {
 public:
  Picture(const Program& program, int64_t bytes)
      : groups_(static_cast<int64_t>(program.groups.size())), bytes_(bytes) {
    columns_ = std::clamp<int64_t>(groups_, 1, kColumns);
    cells_.assign(static_cast<size_t>(columns_ * kRows), '.');
    covered_.assign(cells_.size(), 0);
  }

  void Add(const BufferUse& buffer, char letter) {
    for (int64_t row = 0; row < kRows; ++row) {
      const double in_row = Shared(buffer.address, buffer.address + buffer.bytes,
                                   Edge(bytes_, row, kRows), Edge(bytes_, row + 1, kRows));
      for (int64_t column = 0; column < columns_ && in_row > 0; ++column) {
        const double in_column =
            Shared(buffer.first_group, buffer.end_group, Edge(groups_, column, columns_),
                   Edge(groups_, column + 1, columns_));
        const auto cell = static_cast<size_t>(row * columns_ + column);
        if (in_row * in_column <= covered_[cell]) continue;
        covered_[cell] = in_row * in_column;
        cells_[cell] = letter;
      }
    }
  }

  std::string Text() const {
    std::string text;
    for (int64_t row = kRows; row-- > 0;) {
      const auto begin = cells_.begin() + row * columns_;
      text += Concat("  |", std::string(begin, begin + columns_), "|\n");
    }
    return text;
  }

 private:
  static constexpr int64_t kColumns = 96, kRows = 16;

  static double Edge(int64_t whole, int64_t part, int64_t parts) {
    return static_cast<double>(whole) * static_cast<double>(part) / static_cast<double>(parts);
  }
  static double Shared(int64_t first, int64_t last, double from, double to) {
    return std::max(
        0.0, std::min(static_cast<double>(last), to) - std::max(static_cast<double>(first), from));
  }

  int64_t groups_, bytes_, columns_ = 1;
  std::vector<char> cells_;
  std::vector<double> covered_;
};

// Where each group begins, from 0 to 1; one more for the end.
std::vector<double> TimesOf(const Program& program) {
  std::vector<double> times = {0};
  int64_t total = 0;
  for (const Counters& c : program.predicted) total += c.cycles;
  const size_t groups = program.groups.size();
  for (size_t g = 0; g < groups; ++g) {
    const double share =
        total > 0 ? static_cast<double>(program.predicted[g].cycles) / static_cast<double>(total)
                  : 1.0 / static_cast<double>(groups);
    times.push_back(times.back() + share);
  }
  return times;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain =
        c != '<' && c != '>' && c != '&' && c != '"' && static_cast<unsigned char>(c) >= ' ';
    escaped += plain ? std::string(1, c) : Concat("&#", static_cast<int>(c) & 0xff, ";");
  }
  return escaped;
}

}  // namespace

std::string MemoryMapText(const Program& program) {
  std::ostringstream out;
  for (size_t m = 0; m < program.target.memories.size(); ++m) {
    const Memory& memory = program.target.memories[m];
    const Peak peak = PeakOf(program, m);
    out << "memory '" << memory.name << "': " << memory.bytes << " bytes, peak " << peak.bytes;
    if (peak.bytes > 0) out << " in group " << peak.group;
    out << "\n";
    const std::vector<const BufferUse*> buffers = BuffersIn(program, m);
    const std::vector<char> letters = LettersOf(buffers);
    Picture picture(program, memory.bytes);
    for (size_t b = 0; b < buffers.size(); ++b) picture.Add(*buffers[b], letters[b]);
    if (!buffers.empty()) out << picture.Text();
    for (size_t b = 0; b < buffers.size(); ++b) {
      out << "  " << letters[b] << "  " << buffers[b]->address << " to "
          << buffers[b]->address + buffers[b]->bytes << "  groups " << buffers[b]->first_group
          << " to " << buffers[b]->end_group - 1 << "  " << buffers[b]->name << "\n";
    }
  }
  return out.str();
}

std::string MemoryMapSvg(const Program& program) {
  constexpr double kWidth = 1600, kHeight = 320, kMargin = 24;
  static const char* const kColours[] = {"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2",
                                         "#eeca3b", "#b279a2", "#ff9da6", "#9d755d", "#bab0ac"};
  const std::vector<double> times = TimesOf(program);
  const size_t memories = program.target.memories.size();
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kWidth + 2 * kMargin
      << "\" height=\"" << static_cast<double>(memories) * (kHeight + 2 * kMargin)
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n";
  for (size_t m = 0; m < memories; ++m) {
    const Memory& memory = program.target.memories[m];
    const double bottom = static_cast<double>(m + 1) * (kHeight + 2 * kMargin) - kMargin;
    const double scale = kHeight / static_cast<double>(std::max<int64_t>(memory.bytes, 1));
    out << "<text x=\"" << kMargin << "\" y=\"" << bottom - kHeight - 6 << "\">"
        << Escaped(memory.name) << ": " << memory.bytes << " bytes, peak "
        << PeakOf(program, m).bytes << "</text>\n<rect x=\"" << kMargin << "\" y=\""
        << bottom - kHeight << "\" width=\"" << kWidth << "\" height=\"" << kHeight
        << "\" fill=\"#f4f4f4\" stroke=\"#888\"/>\n";
    size_t colour = 0;
    for (const BufferUse* b : BuffersIn(program, m)) {
      const double x = kWidth * times[static_cast<size_t>(b->first_group)];
      const double end = kWidth * times[static_cast<size_t>(b->end_group)];
      const double height = scale * static_cast<double>(b->bytes);
      out << "<rect x=\"" << kMargin + x << "\" y=\""
          << bottom - scale * static_cast<double>(b->address) - height << "\" width=\"" << end - x
          << "\" height=\"" << height << "\" fill=\"" << kColours[colour++ % std::size(kColours)]
          << "\" stroke=\"#fff\" stroke-width=\"0.5\"><title>" << Escaped(b->name) << ": "
          << b->bytes << " bytes at " << b->address << ", groups " << b->first_group << " to "
          << b->end_group - 1 << "</title></rect>\n";
    }
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace dla::machine
