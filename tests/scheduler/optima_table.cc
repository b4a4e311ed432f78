#include "tests/scheduler/optima_table.h"

#include <fstream>
#include <sstream>

namespace dla::scheduler {

std::vector<TableRow> ReadTable(const std::string& name) {
  std::ifstream file(std::string(DLA_SOURCE_DIR) + "/tests/data/mapping/" + name);
  std::string line;
  std::vector<std::string> header;
  std::vector<TableRow> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (header.empty()) {
      header = cells;
      continue;
    }
    TableRow row;
    for (size_t i = 0; i < header.size(); ++i) row[header[i]] = cells.at(i);
    rows.push_back(row);
  }
  return rows;
}

int64_t Number(const TableRow& row, const std::string& key) { return std::stoll(row.at(key)); }

Layer LayerOf(const TableRow& row) {
  Layer l;
  l.N = Number(row, "N"), l.G = Number(row, "G"), l.M = Number(row, "M"), l.C = Number(row, "C");
  l.E = Number(row, "E"), l.F = Number(row, "F"), l.R = Number(row, "R"), l.S = Number(row, "S");
  l.stride = Number(row, "stride"), l.dilation = Number(row, "dilation");
  l.pad = Number(row, "pad");
  if (row.count("H") != 0) {
    l.H = Number(row, "H"), l.W = Number(row, "W");
  } else {
    l.H = (l.E - 1) * l.stride + l.dilation * (l.R - 1) + l.stride - 2 * l.pad;
    l.W = (l.F - 1) * l.stride + l.dilation * (l.S - 1) + l.stride - 2 * l.pad;
  }
  return l;
}

}  // namespace dla::scheduler
