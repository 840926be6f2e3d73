// Package lab shows what happens without each part of an idempotent payment. Designs as real projects have shipped them go
// through the same storms as the service itself, each interleaving step by step, so that a fault shows every time.
package lab

import (
	"kakutei/interfaces/lab/apart"
	"kakutei/interfaces/lab/kakutei"
	"kakutei/interfaces/lab/lookup"
	"kakutei/interfaces/lab/newgatewaykey"
	"kakutei/interfaces/lab/noactor"
	"kakutei/interfaces/lab/nofence"
	"kakutei/interfaces/lab/nofingerprint"
	"kakutei/interfaces/lab/nokey"
	"kakutei/interfaces/lab/onlyaggregate"
	"kakutei/interfaces/lab/onlyconstraint"
	"kakutei/interfaces/lab/onlyrecord"
	"kakutei/interfaces/lab/world"
)

// Design is one way to confirm payments that does not hold.
type Design struct {
	Name string // of its package
	// Storm is the one in which its fault shows; others may show it, too.
	Storm string
	// Report is a public one of the same fault, and Where it was reported.
	Report, Where string

	open func(orders world.Orders) world.Service
}

// Designs are in the order in which one learns: each mends what the one before it lacked, and lacks something else.
var Designs = []Design{
	{
		Name: "nokey", Storm: "double_click",
		Report: "https://github.com/Attendize/Attendize/issues/748", Where: "Attendize #748",
		open: func(o world.Orders) world.Service { return nokey.New(o).Confirm },
	},
	{
		Name: "lookup", Storm: "double_click",
		Report: "https://github.com/jcagarcia/grape-idempotency/issues/10", Where: "grape-idempotency #10",
		open: func(o world.Orders) world.Service { return lookup.New(o).Confirm },
	},
	{
		Name: "nofingerprint", Storm: "key_reused",
		Report: "https://github.com/josipmusa/idempotency4j/issues/12", Where: "idempotency4j #12",
		open: func(o world.Orders) world.Service { return nofingerprint.New(o).Confirm },
	},
	{
		Name: "noactor", Storm: "stranger",
		Report: "https://github.com/arun0009/idempotent/pull/217", Where: "idempotent #217",
		open: func(o world.Orders) world.Service { return noactor.New(o).Confirm },
	},
	{
		Name: "apart", Storm: "crash_after_commit",
		Report: "https://github.com/ikyriak/IdempotentAPI/issues/57", Where: "IdempotentAPI #57",
		open: func(o world.Orders) world.Service { return apart.New(o).Confirm },
	},
	{
		Name: "nofence", Storm: "slow_holder",
		Report: "https://github.com/langwatch/langwatch/pull/6511", Where: "langwatch #6511",
		open: func(o world.Orders) world.Service { return nofence.New(o).Confirm },
	},
	{
		Name: "newgatewaykey", Storm: "crash_after_charge",
		Report: "https://github.com/tempoxyz/pympp/pull/155", Where: "pympp #155",
		open: func(o world.Orders) world.Service { return newgatewaykey.New(o).Confirm },
	},
	{
		Name: "onlyrecord", Storm: "new_key",
		Report: "https://github.com/mozilla/fxa/issues/6553", Where: "fxa #6553",
		open: func(o world.Orders) world.Service { return onlyrecord.New(o).Confirm },
	},
	{
		Name: "onlyaggregate", Storm: "double_click",
		Report: "https://github.com/spree/spree/pull/4499", Where: "spree #4499",
		open: func(o world.Orders) world.Service { return onlyaggregate.New(o).Confirm },
	},
	{
		Name: "onlyconstraint", Storm: "double_click",
		Report: "https://github.com/odoo/odoo/pull/150102", Where: "odoo #150102",
		open: func(o world.Orders) world.Service { return onlyconstraint.New(o).Confirm },
	},
}

// Lab runs the storms.
type Lab struct{ open kakutei.NewStore }

// New is a lab whose Kakutei works on stores of this kind.
func New(open kakutei.NewStore) *Lab { return &Lab{open: open} }

// Kakutei sends a storm over the service's own use case.
func (l *Lab) Kakutei(s Storm) (Run, error) {
	return play(s, func(w *world.World) (world.Service, error) {
		shop, err := kakutei.New(w, l.open)
		if err != nil {
			return nil, err
		}
		return shop.Confirm, nil
	})
}

// Run sends a storm over the design.
func (d Design) Run(s Storm) Run {
	run, _ := play(s, func(w *world.World) (world.Service, error) { return d.open(w.Orders), nil })
	return run
}
