// The proof: whatever was killed, the heaps and the database agree.
#include "heap_check.hpp"
#include "roles.hpp"
#include <vector>

namespace orders {
namespace {

// Collects what is wrong; the first finding counts.
class findings {
public:
    void expect(bool is_true, const std::string &otherwise) {
        if (!is_true && first_.empty())
            first_ = otherwise;
    }
    void equal(uint64_t one, uint64_t other, const char *what) {
        expect(one == other, std::string(what) + ": " + std::to_string(one) + " and " + std::to_string(other));
    }
    const std::string &first() const { return first_; }

private:
    std::string first_;
};

ty_outbox_info outbox_of(ty_heap *heap, const char *box) {
    ty_outbox_info info{};
    info.struct_size = sizeof info;
    demo::check(ty_outbox_get_info(heap, box, &info));
    return info;
}

// What has left one heap has arrived in the other, or is still in the outbox; and nothing was removed from it that has
// not arrived.
void check_channel(findings &found, ty_heap *from, const char *box, ty_heap *to, uint64_t sent, uint64_t received,
                   const char *what) {
    const ty_outbox_info info = outbox_of(from, box);
    uint64_t last = 0;
    demo::check(ty_inbox_last(to, info.source, &last));
    found.equal(info.next - 1, sent, what);
    found.equal(last, received, what);
    found.expect(received <= sent, std::string(what) + ": there are more than were sent");
    found.expect(info.first <= received + 1, std::string(what) + ": some are forgotten before they arrived");
}

void check_queue(findings &found, const queue *all) {
    uint64_t number = all->done;
    const order *last = nullptr;
    for (const order *each = all->first; each != nullptr; each = each->next) {
        found.equal(each->number, ++number, "the order in the queue");
        last = each;
    }
    found.equal(number, all->received, "the queue's last order");
    found.expect(last == all->last, "the queue's end is another one");
}

void check_shop(findings &found, const shop *all, const invoice_sums &invoices) {
    std::vector<int64_t> sold(all->product_count);
    uint64_t purchases = 0;
    int64_t earned = 0, billed = 0;
    for (uint64_t c = 0; c < all->customer_count; ++c) {
        int64_t spent = 0;
        for (const purchase *each = all->customers[c]->last; each != nullptr; each = each->before) {
            found.expect(each->before == nullptr || each->before->number < each->number, "purchases are out of order");
            spent += each->cents;
            sold[each->product] += each->count;
            ++purchases;
        }
        const auto bill = invoices.cents.find(static_cast<uint32_t>(c));
        const int64_t of_database = bill == invoices.cents.end() ? 0 : bill->second;
        const std::string who = "customer " + std::to_string(c);
        found.expect(all->customers[c]->cents + spent == opening_cents, who + " has not what is left");
        found.expect(of_database == spent, who + " has invoices over " + std::to_string(of_database) +
                                               " cents, and purchases over " + std::to_string(spent));
        earned += spent;
        billed += of_database;
    }
    for (uint64_t p = 0; p < all->product_count; ++p) {
        const product &each = all->products[p];
        const std::string what = "product " + std::to_string(p);
        found.expect(each.stock >= 0 && each.stock + each.sold == opening_stock(p), what + " does not add up");
        found.expect(each.sold == sold[p], what + " was sold, and nobody has it");
    }
    found.equal(purchases + all->refused, all->done, "orders done");
    found.expect(earned == all->earned_cents && billed == earned, "the money does not add up");
    found.equal(invoices.count, all->done, "invoices, and orders done");
    found.equal(invoices.last, all->done, "the last invoice, and the last order");
}

void check_depot(findings &found, const depot *all, const shop *sold) {
    for (uint64_t p = 0; p < all->product_count; ++p)
        found.expect(all->sent[p] <= sold->products[p].sold, "the depot has sent what was not sold");
}

void check_depot_has_all(findings &found, const depot *all, const shop *sold) {
    for (uint64_t p = 0; p < all->product_count; ++p)
        found.expect(all->sent[p] == sold->products[p].sold, "the depot has not sent what was sold");
}

} // namespace

std::string prove(const role_plan &plan) {
    findings found;
    demo::heap_file counter_heap(plan.paths.heap("counter"));
    shop_group in(plan);
    demo::heap_file depot_heap(plan.paths.heap("depot"));
    ty_heap *heaps[] = {counter_heap.get(), in.queue_heap(), in.shop_heap(), depot_heap.get()};
    for (ty_heap *heap : heaps)
        if (std::string problem = demo::problem_of(heap); !problem.empty())
            return problem;
    const auto *at = root_object<counter>(heaps[0], "counter");
    const auto *waiting = root_object<queue>(heaps[1], "queue");
    const auto *sold = root_object<shop>(heaps[2], "shop");
    const auto *sent = root_object<depot>(heaps[3], "depot");
    found.expect(at->taken >= plan.acknowledged, "order " + std::to_string(plan.acknowledged) +
                                                     " was acknowledged, and the last one is " +
                                                     std::to_string(at->taken));
    found.equal(waiting->done, sold->done, "orders that left the queue, and orders done");
    check_channel(found, heaps[0], orders_box, heaps[1], at->taken, waiting->received, "orders");
    check_channel(found, heaps[2], parcels_box, heaps[3], sold->done, sent->parcels, "parcels");
    check_queue(found, waiting);
    check_shop(found, sold, in.invoices().sums());
    check_depot(found, sent, sold);
    found.equal(in.invoices().prepared(), 0, "transactions that are prepared in the database");
    if (plan.is_final) {
        found.equal(sold->done, at->taken, "orders done, and orders taken");
        found.equal(sent->parcels, at->taken, "orders that the depot knows, and orders taken");
        check_depot_has_all(found, sent, sold);
    }
    return found.first();
}

} // namespace orders
