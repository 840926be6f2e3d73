package order

// Status is where an order stands.
type Status string

const (
	// Placed says that the order waits for its payment.
	Placed Status = "PLACED"
	// PaymentPending says that an attempt runs, or that its outcome is unknown.
	PaymentPending Status = "PAYMENT_PENDING"
	// Paid is final.
	Paid Status = "PAID"
	// Cancelled is final.
	Cancelled Status = "CANCELLED"
)

type verb string

const (
	beginPayment   verb = "begin its payment"
	confirmPayment verb = "confirm its payment"
	declinePayment verb = "decline its payment"
	cancel         verb = "cancel it"
)

// transitions is the whole state machine: what is not here is refused.
var transitions = map[verb]map[Status]Status{
	beginPayment:   {Placed: PaymentPending},
	confirmPayment: {PaymentPending: Paid},
	declinePayment: {PaymentPending: Placed},
	cancel:         {Placed: Cancelled},
}

func (o *Order) move(v verb) error {
	to, legal := transitions[v][o.s.Status]
	if !legal {
		return o.refuse(v)
	}
	o.s.Status = to
	return nil
}

// refuse is final, except while a payment runs: then nobody knows yet what the order will be.
func (o *Order) refuse(v verb) error {
	if o.s.Status == PaymentPending {
		return ErrPaymentInProgress
	}
	return ErrInvalidState.Saying("the order is %s: one cannot %s", o.s.Status, v).With("orderStatus", o.s.Status)
}
