#include "common/prefix_tree.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace kernelcore {
namespace {

constexpr std::size_t kWorkPerBranch = 50;
constexpr std::size_t kWorkPerComparison = 16;

class Gardener {
 public:
  Gardener(const RaggedView<std::int32_t>& rows, const std::vector<std::uint32_t>& sorted,
           Worker& worker)
      : rows_(rows), sorted_(sorted), worker_(worker) {}

  PrefixTree grow() {
    std::size_t first = 0;
    while (first < sorted_.size() && rows_.size(sorted_[first]) == 0) ++first;
    pending_.push_back({first, sorted_.size(), 0, 0, 0});
    // A stack of its own: a chain of texts, each a prefix of the next, may be very deep.
    while (!pending_.empty()) {
      const Branch branch = pending_.back();
      pending_.pop_back();
      worker_.spend(kWorkPerBranch + 4 * (branch.last - branch.first) + branch.n_shared -
                    branch.n_before);
      std::size_t first_child = branch.first;
      if (branch.n_shared > 0) first_child = add_edge(branch);
      if (first_child < branch.last) split(first_child, branch);
    }
    return std::move(tree_);
  }

 private:
  // Rows first .. last - 1 of sorted_ share n_shared words; their parents n_before of them.
  struct Branch {
    std::size_t first, last, n_before, n_shared, level;
  };

  std::int32_t word(std::size_t k, std::size_t depth) const {
    return rows_.begin(sorted_[k])[depth];
  }

  // Returns the first row that goes on beyond the node reached.
  std::size_t add_edge(const Branch& branch) {
    const std::size_t first_end = tree_.ends.size();
    std::size_t k = branch.first;
    for (; k < branch.last && rows_.size(sorted_[k]) == branch.n_shared; ++k) {
      tree_.ends.push_back(sorted_[k]);
    }
    tree_.edges.push_back({rows_.begin(sorted_[branch.first]) + branch.n_before,
                           branch.n_shared - branch.n_before, branch.level - 1, first_end,
                           k - branch.first, k == branch.last});
    tree_.n_levels = std::max(tree_.n_levels, branch.level + 1);
    return k;
  }

  void split(std::size_t first, const Branch& parent) {
    children_.clear();
    for (std::size_t k = first; k < parent.last;) {
      std::size_t last = k + 1;
      while (last < parent.last && word(last, parent.n_shared) == word(k, parent.n_shared)) {
        ++last;
      }
      // In lexicographic order, what the ends of a run share all of it shares.
      const std::size_t length =
          std::min(rows_.size(sorted_[k]), rows_.size(sorted_[last - 1]));
      std::size_t n_shared = parent.n_shared + 1;
      while (n_shared < length && word(k, n_shared) == word(last - 1, n_shared)) ++n_shared;
      children_.push_back({k, last, parent.n_shared, n_shared, parent.level + 1});
      k = last;
    }
    const auto is_branching = [this](const Branch& child) {
      return rows_.size(sorted_[child.last - 1]) > child.n_shared;
    };
    // Pushed in reverse: the stack hands them out in this order.
    std::sort(children_.begin(), children_.end(), [&](const Branch& a, const Branch& b) {
      return std::make_tuple(is_branching(a), a.n_shared, a.first) >
             std::make_tuple(is_branching(b), b.n_shared, b.first);
    });
    pending_.insert(pending_.end(), children_.begin(), children_.end());
  }

  const RaggedView<std::int32_t>& rows_;
  const std::vector<std::uint32_t>& sorted_;
  Worker& worker_;
  std::vector<Branch> pending_;
  std::vector<Branch> children_;
  PrefixTree tree_;
};

}  // namespace

std::vector<std::uint32_t> sorted_rows(const RaggedView<std::int32_t>& rows, std::size_t first,
                                       std::size_t last, Worker& worker) {
  check_fits<std::uint32_t>(last, "captions");
  std::vector<std::uint32_t> order(last - first);
  std::iota(order.begin(), order.end(), static_cast<std::uint32_t>(first));
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    worker.spend(kWorkPerComparison);
    return std::lexicographical_compare(rows.begin(a), rows.end(a), rows.begin(b), rows.end(b));
  });
  return order;
}

PrefixTree grow_prefix_tree(const RaggedView<std::int32_t>& rows,
                            const std::vector<std::uint32_t>& sorted, Worker& worker) {
  return Gardener(rows, sorted, worker).grow();
}

}  // namespace kernelcore
