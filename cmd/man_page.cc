#include "cmd/man_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "support/status.h"

namespace dla {
namespace {

// Exit codes of all commands (support/status.h).
constexpr struct {
  int code;
  const char* meaning;
} kExitCodes[] = {
    {0, "Done."},
    {1, "Outputs differ from those expected (dlarun)."},
    {2, "The command line is wrong."},
    {3, "An input file breaks its format."},
    {4, "The input is valid, but more than this version can do; all reasons are listed."},
    {5, "The model does not fit the accelerator; the smallest sizes that would are listed."},
    {6, "A file cannot be read or written, or memory ran out."},
    {70, "An internal error; please report it."},
};

// Text as troff: no character is taken for markup, and no line for a request.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

// "-o, --output FILE", or a positional's name.
std::string Heading(const CLI::Option& option) {
  const std::string names =
      option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  std::string text = "\\fB" + Escaped(names) + "\\fR";
  for (size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, ", ");
  }
  // A flag takes nothing; a positional's type is its name.
  if (option.get_items_expected_max() > 0 && !option.get_positional()) {
    text += " \\fI" + Escaped(option.get_type_name()) + "\\fR";
  }
  return text;
}

void PrintOptions(const CLI::App& app, std::ostream& out) {
  for (const CLI::Option* option : app.get_options()) {
    out << ".TP\n" << Heading(*option) << "\n" << Escaped(option->get_description());
    if (!option->get_default_str().empty()) {
      out << " (default " << Escaped(option->get_default_str()) << ")";
    }
    out << "\n";
  }
}

void PrintSynopsis(const std::string& tool, const CLI::App& app, std::ostream& out) {
  out << "\\fB" << Escaped(tool) << "\\fR";
  if (!app.get_subcommands(nullptr).empty()) out << " \\fICOMMAND\\fR";
  out << " [\\fIOPTION\\fR]...";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) out << " \\fI" << Escaped(option->get_name(true)) << "\\fR";
  }
  out << "\n";
}

}  // namespace

std::string ManPage(const std::string& tool, const CLI::App& app) {
  std::string title = tool, upper;
  std::replace(title.begin(), title.end(), ' ', '-');
  for (const char c : title) {
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  std::ostringstream out;
  out << ".TH " << upper << " 1 \"\" \"dla " << DLA_VERSION << "\" \"User Commands\"\n"
      << ".SH NAME\n"
      << Escaped(title) << " \\- " << Escaped(app.get_description()) << "\n.SH SYNOPSIS\n";
  PrintSynopsis(tool, app, out);
  out << ".SH OPTIONS\n";
  PrintOptions(app, out);
  const auto subcommands = app.get_subcommands(nullptr);
  if (!subcommands.empty()) out << ".SH COMMANDS\n";
  for (const CLI::App* sub : subcommands) {
    out << ".SS " << Escaped(sub->get_name()) << "\n" << Escaped(sub->get_description()) << "\n";
    PrintOptions(*sub, out);
  }
  if (!app.get_footer().empty()) out << ".SH NOTES\n" << Escaped(app.get_footer()) << "\n";
  out << ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) {
    out << ".TP\n.B " << code << "\n" << Escaped(meaning) << "\n";
  }
  return out.str();
}

}  // namespace dla
