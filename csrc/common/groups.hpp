// Values grouped by an integer key with a counting sort; every inverted index is built so.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace kernelcore {

template <class Value>
struct Groups {
  std::vector<std::size_t> begins;  // of each key, and the end of the last one
  std::vector<Value> values;

  const Value* begin(std::size_t key) const { return values.data() + begins[key]; }
  const Value* end(std::size_t key) const { return values.data() + begins[key + 1]; }
  std::size_t size(std::size_t key) const { return begins[key + 1] - begins[key]; }
};

// Groups the values of keys 0 .. n_keys - 1; within a group they keep their order.
// for_each(add) calls add(key, value) for each value. It is called twice: to count, to place.
template <class Value, class ForEach>
Groups<Value> grouped(std::size_t n_keys, const ForEach& for_each) {
  Groups<Value> groups;
  // begins[key + 1] counts up from the beginning of the key's values to their end, which is the
  // beginning of the next key's.
  std::vector<std::size_t>& begins = groups.begins;
  begins.resize(n_keys + 2);
  for_each([&](std::size_t key, const Value&) { ++begins[key + 2]; });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  groups.values.resize(begins.back());
  for_each(
      [&](std::size_t key, const Value& value) { groups.values[begins[key + 1]++] = value; });
  begins.pop_back();
  return groups;
}

}  // namespace kernelcore
