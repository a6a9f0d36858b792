#include "descriptors.hpp"

#include "branch.hpp"

namespace ledger {

TY_TYPE_DECLARE(order);
TY_TYPE_DECLARE(receipt);

TY_TYPE(order, TY_POINTER(order, next, &order_descriptor), TY_BYTES(order, note))

TY_TYPE(receipt, TY_POINTER(receipt, next, &receipt_descriptor), TY_BYTES(receipt, note))

TY_TYPE(bank, TY_BYTES(bank, accounts), TY_POINTER(bank, first_order, &order_descriptor),
        TY_REFERENCE(bank, last_order), TY_POINTER(bank, first_receipt, &receipt_descriptor),
        TY_REFERENCE(bank, last_receipt))

TY_TYPE(slip, TY_BYTES(slip, note))

TY_TYPE(teller, TY_POINTERS(teller, slips, &slip_descriptor))

TY_TYPE(branch, TY_BYTES(branch, accounts), TY_POINTER_COUNTED(branch, tellers, teller_count, &teller_descriptor))

} // namespace ledger
