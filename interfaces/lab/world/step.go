package world

// Step is something that happens, as the timeline names it.
type Step string

// What clients and time do.
const (
	Sent       Step = "sent"
	Answered   Step = "answered"
	AnswerLost Step = "answer_lost"
	TimePasses Step = "time_passes"
	Died       Step = "died"
)

// What a transaction of a design comes to.
const (
	OrderRead         Step = "order_read"
	OrderRefuses      Step = "order_refuses" // another customer's, another amount
	OrderPaidAlready  Step = "order_paid_already"
	OrderPaid         Step = "order_paid"
	OrderDeclined     Step = "order_declined"
	OrderCancelled    Step = "order_cancelled"
	OrderChanged      Step = "order_changed" // by another since it was read: rolled back
	PaymentExists     Step = "payment_exists"
	PaymentBegun      Step = "payment_begun"
	PaymentRuns       Step = "payment_runs"
	KeyUnknown        Step = "key_unknown"
	KeyClaimed        Step = "key_claimed"
	KeyTakenOver      Step = "key_taken_over"
	KeyBusy           Step = "key_busy"
	KeyMismatch       Step = "key_mismatch"
	KeyProcessed      Step = "key_processed"
	AnswerFound       Step = "answer_found"
	AnswerStored      Step = "answer_stored"
	PaidWithAnswer    Step = "paid_with_answer" // the order's change and the answer in one commit
	DecidedWithAnswer Step = "decided_with_answer"
	Fenced            Step = "fenced"
)

// What passes between a design and the provider.
const (
	Asks        Step = "asks"
	AsksKeyless Step = "asks_keyless"
	Takes       Step = "takes"
	Repeats     Step = "repeats"
	Declines    Step = "declines"
)

// paid tells whether the step was the commit that made an order PAID.
func (s Step) paid() bool { return s == OrderPaid || s == PaidWithAnswer }
