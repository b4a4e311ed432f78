// Rows of the tables in tests/data/mapping.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/layer.h"

namespace dla::scheduler {

using TableRow = std::map<std::string, std::string>;  // by column

std::vector<TableRow> ReadTable(const std::string& name);
int64_t Number(const TableRow& row, const std::string& column);
// Columns N to pad, and H and W or the largest input that gives E rows and F columns.
Layer LayerOf(const TableRow& row);

}  // namespace dla::scheduler
