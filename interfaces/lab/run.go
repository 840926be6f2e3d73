package lab

import (
	"net/http"

	"kakutei/interfaces/lab/world"
)

// Fault is what is wrong with a run, as the shopper or the shop would say it.
type Fault string

// The faults. A run may have several; Kakutei's have none.
const (
	ChargedTwice    Fault = "charged_twice"
	PaidForNothing  Fault = "paid_without_charge" // told that it is paid, and nobody took the money
	StrangerAllowed Fault = "stranger_answered"   // somebody else's receipt
	ChargedAndNo    Fault = "charged_and_refused" // the owner's last word is no, and the money is gone
	NeverAnswered   Fault = "never_answered"      // the money is gone, and there is no end to "try again"
)

// Run is what a storm has come to with one design.
type Run struct {
	Storm    string
	Timeline []world.Event
	Charges  int // all that the provider has taken
	Faults   []Fault
}

// play sends a storm over a service in a fresh world.
func play(s Storm, open func(w *world.World) (world.Service, error)) (Run, error) {
	w := world.New(first, second)
	defer w.Close()
	service, err := open(w)
	if err != nil {
		return Run{}, err
	}
	w.Serve(service)
	s.play(w)
	run := Run{Storm: s.Name, Timeline: w.Timeline(), Faults: faults(w)}
	for _, o := range []world.Order{first, second} {
		run.Charges += w.Provider.Charges(o.ID)
	}
	return run, nil
}

// faults judges by what the provider has booked and what clients were told; it knows no design.
func faults(w *world.World) (found []Fault) {
	add := func(f Fault, wrong bool) {
		if wrong {
			found = append(found, f)
		}
	}
	for _, o := range []world.Order{first, second} {
		charges := w.Provider.Charges(o.ID)
		paid, no, again, stranger := false, false, false, false
		for _, told := range w.Told() {
			if told.Request.Order != o.ID {
				continue
			}
			isPaid := told.Answer.Status == http.StatusOK
			switch {
			case told.Request.Actor != o.Customer:
				stranger = stranger || isPaid
			case isPaid:
				paid = true
			case told.Answer.Again:
				again = true
			default:
				no = true
			}
		}
		add(ChargedTwice, charges > 1)
		add(PaidForNothing, paid && charges == 0)
		add(StrangerAllowed, stranger)
		add(ChargedAndNo, charges > 0 && no)
		add(NeverAnswered, charges > 0 && again && !paid && !no)
	}
	return found
}
