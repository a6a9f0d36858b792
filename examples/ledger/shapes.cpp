#include "shapes.hpp"

#include "branch.hpp"

namespace ledger {

TY_SHAPE_DECLARE(order);
TY_SHAPE_DECLARE(receipt);

TY_SHAPE(order, TY_POINTER(order, next, &order_shape), TY_BYTES(order, note))

TY_SHAPE(receipt, TY_POINTER(receipt, next, &receipt_shape), TY_BYTES(receipt, note))

TY_SHAPE(bank, TY_BYTES(bank, accounts), TY_POINTER(bank, first_order, &order_shape), TY_REFERENCE(bank, last_order),
         TY_POINTER(bank, first_receipt, &receipt_shape), TY_REFERENCE(bank, last_receipt))

TY_SHAPE(slip, TY_BYTES(slip, note))

TY_SHAPE(teller, TY_POINTERS(teller, slips, &slip_shape))

TY_SHAPE(branch, TY_BYTES(branch, accounts), TY_POINTER_COUNTED(branch, tellers, teller_count, &teller_shape))

} // namespace ledger
