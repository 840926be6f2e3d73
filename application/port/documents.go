package port

import "kakutei/domain/fault"

// Documents writes outcomes as clients read them. It is called once per outcome, inside the completing transaction: the
// bytes are stored, and sent then and at every replay.
type Documents interface {
	// Result writes a success. The view is the use case's published language.
	Result(view any) ([]byte, error)
	// Problem writes a refusal. It names no request: it is for every retry.
	Problem(refusal *fault.Fault) ([]byte, error)
}
