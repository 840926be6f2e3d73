package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/oversight"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gateway"
)

var reconciling = append([]check{
	{"a shop whose payments are in order has no findings", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		for i := range 7 {
			m.pays(fmt.Sprintf("k-%d", i), "")
		}
		m.orders(tea(t)) // never paid
		declined := m.pays("no", "pm_declined")
		m.confirms(declined, "yes", "") // the second attempt
		for page := range 4 {
			assert.Empty(t, m.reconciled(page), "pages of %d", page)
		}
		assert.Zero(t, m.lookups.Load(), "what fits is not looked at twice")
	}},
	{"all that is wrong is found at once, each thing once, however small the pages are", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		var want []string
		for _, name := range slices.Sorted(maps.Keys(plants)) {
			id, kinds := plants[name](m)
			for _, kind := range kinds {
				want = append(want, kind+" "+id)
			}
			m.pays("after "+name, "")
		}
		for page := range 4 {
			assert.ElementsMatch(t, want, m.reconciled(page), "pages of %d", page)
		}
	}},
	{"a payment whose charge is older than the list goes back is looked up, not accused", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		s1, c := m.paid(time.Hour), m.charge(25*time.Hour)
		m.stores(s1.by(c))
		m.books(c.forOrder(s1.ID))
		assert.Empty(t, m.reconciled(0))
		assert.Equal(t, int64(1), m.lookups.Load())
	}},
	{"what is older than was asked for is left out", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		m.stores(m.paid(25 * time.Hour))                         // not charged
		m.books(m.charge(25 * time.Hour).forOrder("no order"))   // not paid
		m.books(m.charge(23 * time.Hour).forOrder("some order")) // of this the run must tell
		assert.Equal(t, []string{"charged_not_paid some order"}, m.reconciled(0))
	}},
	{"thousands of payments are compared page by page, without a look at each", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		const n = 2000
		var paid []order.State
		for i := range n { // over a day, each paid a second after its charge
			ago := 23*time.Hour - time.Duration(i)*40*time.Second
			c := m.charge(ago)
			p := m.paid(ago - time.Second).by(c)
			paid = append(paid, p.State)
			m.books(c.forOrder(p.ID))
		}
		m.storesAll(paid)
		tally := m.run(100, func(f oversight.Finding) error { return fmt.Errorf("found %v", f) })
		assert.Equal(t, n, tally.Charges)
		assert.Equal(t, n, tally.PaidOrders)
		assert.Zero(t, m.lookups.Load())

		m.books(m.charge(12 * time.Hour).forOrder(paid[n/2].ID).attempt(2))
		assert.Equal(t, []string{"charged_twice " + string(paid[n/2].ID)}, m.reconciled(100))
	}},
	{"no payment is accused while it goes on", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			atOnce(4, func(i int) {
				for j := range 15 {
					method := []string{"", "pm_slow_1", "pm_lost_answer", "pm_declined"}[j%4]
					id, err := m.shop.Place(t.Context())
					if err != nil {
						continue // it is not about this
					}
					c := Payment(id, fmt.Sprintf("k-%d-%d", i, j))
					c.Method = method
					_, _ = m.shop.ConfirmPayment(t.Context(), c)
				}
			})
		}()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			for _, found := range m.reconciled(2) {
				assert.Contains(t, found, "unresolved ")
			}
		}
	}},
	{"an order that changes while it is looked at is looked at again", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		o := tea(t)
		id := m.orders(o)
		m.books(m.charge(time.Hour).forOrder(id))
		m.listed = func() { // it is paid after the list was read, by a charge that this list does not show
			if m.lookups.Load() > 1 {
				return
			}
			c := m.charge(0).forOrder(id).attempt(2)
			m.books(c)
			do(t, m.Work, func(tx port.Tx) error {
				paid := paidOrder(t)
				paid.ID, paid.ChargeID, paid.PaidAt, paid.Version = id, c.ChargeID, tx.Now(), orderIn(t, m.Beside, id).Version
				if err := tx.Orders().Save(t.Context(), order.Rehydrate(paid)); err != nil {
					return err
				}
				return m.post(tx, paid, money.JPY)
			})
		}
		assert.Equal(t, []string{"charged_twice " + string(id)}, m.reconciled(0))
	}},
	{"an order that keeps changing is unresolved", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		o := tea(t)
		id := m.orders(o)
		m.books(m.charge(time.Hour).forOrder(id))
		m.listed = func() {
			do(t, m.Work, changing(t, o, func(*order.Order, time.Time) error { return nil }))
		}
		assert.Equal(t, []string{"unresolved " + string(id)}, m.reconciled(0))
	}},
	{"a record that ends while its order is looked at is no abandoned one", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		id := m.pays("lost", "pm_lost_answer")
		m.books(m.charge(time.Minute).forOrder(id).attempt(7)) // so the order is looked at again
		finds := 0
		m.Beside = finding{m.Beside, func() {
			if finds++; finds == 3 { // one for each line, and now it is looked at alone: order first, then record
				m.confirms(id, "lost"+string(id), "pm_lost_answer")
			}
		}}
		m.run(1, func(f oversight.Finding) error {
			assert.NotContains(t, f.Detail, "record", "%s", f.Kind)
			return nil
		})
		assert.Equal(t, []string{"charged_twice " + string(id)}, m.reconciled(1))
		assert.Equal(t, order.Paid, orderIn(t, s.Work, id).Status)
	}},
	{"payments that were asked of another provider are counted, not accused", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		c := m.charge(time.Hour)
		for _, p := range []handmade{m.paid(time.Hour).by(c), m.paid(time.Minute), m.paid(time.Second)} {
			p.Attempt.Provider = "https://psp.example"
			m.stores(p)
			if p.ChargeID == c.ChargeID { // it has moved, and still lists what it listed
				m.books(c.forOrder(p.ID))
			}
		}
		m.pays("here", "")
		m.name = "simulator"
		for page := range 4 {
			tally := m.run(page, func(f oversight.Finding) error { return fmt.Errorf("found %v", f) })
			assert.Equal(t, map[string]int{"https://psp.example": 2}, tally.Elsewhere)
			assert.False(t, tally.Whole())
			assert.Equal(t, 2, tally.PaidOrders)
		}
		m.name = "https://psp.example"
		tally := m.run(0, func(oversight.Finding) error { return nil })
		assert.Equal(t, map[oversight.FindingKind]int{oversight.PaidNotCharged: 2}, tally.Findings, "now it can tell")
	}},
	{"a charge that only one of the provider's lists shows is told", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		open, twice := m.orders(tea(t)), m.pays("paid", "")
		m.books(m.charge(time.Hour).forOrder(open))
		m.books(m.charge(time.Minute).forOrder(twice).attempt(2))
		m.hides = func(l payment.Booking) bool { return l.OrderID == string(open) || l.Attempt == 2 }
		want := []string{"charged_not_paid " + string(open), "charged_twice " + string(twice)}
		for page := range 4 {
			assert.ElementsMatch(t, want, m.reconciled(page), "pages of %d", page)
		}
	}},
	{"a list that leads in a circle comes to an end", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		for i := range 5 {
			m.pays(fmt.Sprintf("k-%d", i), "")
		}
		cursors := map[string]string{} // the first three pages, then the second and third again and again
		m.turns = func(next string) string {
			if len(cursors) < 3 {
				cursors[fmt.Sprint(len(cursors))] = next
				return next
			}
			return cursors["0"]
		}
		_, err := m.reconciliation(1).Run(t.Context(), 24*time.Hour, func(oversight.Finding) error { return nil })
		require.ErrorContains(t, err, "leads back")
	}},
	{"what cannot be compared is an error, not a clean bill", func(t *testing.T, s Opened) {
		m := openMarket(t, s)
		m.books(m.charge(time.Hour).forOrder("no order"))
		m.broken = ErrNoAnswer
		_, err := m.reconciliation(0).Run(t.Context(), 24*time.Hour, func(oversight.Finding) error { return nil })
		require.ErrorIs(t, err, ErrNoAnswer)
	}},
}, planted()...)

// planted is a check per plant: it is found, and nothing else is.
func planted() (checks []check) {
	for _, name := range slices.Sorted(maps.Keys(plants)) {
		checks = append(checks, check{"found: " + name, func(t *testing.T, s Opened) {
			m := openMarket(t, s)
			m.pays("before", "")
			id, kinds := plants[name](m)
			m.pays("after", "")
			var want []string
			for _, kind := range kinds {
				want = append(want, kind+" "+id)
			}
			for page := range 4 {
				assert.ElementsMatch(t, want, m.reconciled(page), "pages of %d", page)
			}
		}})
	}
	return checks
}

// plants leave one order with something wrong, by hand, and say what is to be found about it.
var plants = map[string]func(m *market) (orderID string, want []string){
	"a charge of no order": func(m *market) (string, []string) {
		id := string(order.NewID())
		m.books(m.charge(time.Hour).forOrder(order.ID(id)))
		return id, []string{"charged_not_paid"}
	},
	"a charge of an order that nobody confirmed": func(m *market) (string, []string) {
		id := m.orders(tea(m.t))
		m.books(m.charge(time.Hour).forOrder(id))
		return string(id), []string{"charged_not_paid"}
	},
	"a charge of an order that is cancelled": func(m *market) (string, []string) {
		o := tea(m.t)
		id := m.orders(o)
		cancelled(m.t, m.Work, o)
		m.books(m.charge(time.Hour).forOrder(id))
		return string(id), []string{"charged_not_paid"}
	},
	"two charges of an order that is not paid": func(m *market) (string, []string) {
		id := m.orders(tea(m.t))
		m.books(m.charge(time.Hour).forOrder(id))
		m.books(m.charge(time.Minute).forOrder(id).attempt(2))
		return string(id), []string{"charged_not_paid", "charged_twice"}
	},
	"two charges of an order that is not paid, the first one being older than the list goes back": func(
		m *market,
	) (string, []string) {
		id := m.orders(tea(m.t))
		m.books(m.charge(25 * time.Hour).forOrder(id))
		m.books(m.charge(time.Minute).forOrder(id).attempt(2))
		return string(id), []string{"charged_not_paid", "charged_twice"}
	},
	"a payment without a charge": func(m *market) (string, []string) {
		p := m.paid(time.Hour)
		m.stores(p)
		return string(p.ID), []string{"paid_not_charged"}
	},
	"a payment by another charge than the provider has": func(m *market) (string, []string) {
		p := m.paid(time.Hour)
		m.stores(p)
		m.books(m.charge(time.Hour).forOrder(p.ID))
		return string(p.ID), []string{"paid_not_charged"}
	},
	"a payment that the provider has declined": func(m *market) (string, []string) {
		p := m.paid(time.Hour)
		m.stores(p)
		line := m.charge(time.Hour).forOrder(p.ID)
		line.Status, line.ChargeID, line.DeclineCode = gateway.Declined, "", "card_declined"
		m.books(line)
		return string(p.ID), []string{"paid_not_charged"}
	},
	"a second charge": func(m *market) (string, []string) {
		id := m.pays("twice", "")
		m.books(m.charge(time.Second).forOrder(id).attempt(2))
		return string(id), []string{"charged_twice"}
	},
	"a second charge, the first one being older than the list goes back": func(m *market) (string, []string) {
		c := m.charge(25 * time.Hour)
		p := m.paid(24*time.Hour + time.Minute).by(c)
		m.stores(p)
		m.books(c.forOrder(p.ID))
		m.books(m.charge(time.Hour).forOrder(p.ID).attempt(2))
		return string(p.ID), []string{"charged_twice"}
	},
	"other money": func(m *market) (string, []string) {
		c := m.charge(time.Hour)
		c.Amount = 1001
		p := m.paid(time.Hour).by(c)
		m.stores(p)
		m.books(c.forOrder(p.ID))
		return string(p.ID), []string{"money_differs"}
	},
	"the same number of another currency": func(m *market) (string, []string) {
		c := m.charge(time.Hour)
		c.Currency = "EUR"
		p := m.paid(time.Hour).by(c)
		m.stores(p)
		m.books(c.forOrder(p.ID))
		return string(p.ID), []string{"money_differs"}
	},
	"other money, which keeps the order from being confirmed": func(m *market) (string, []string) {
		o := tea(m.t)
		id := m.orders(o)
		begun(m.t, m.Work, o, "k")
		c := m.charge(time.Hour)
		c.Amount = 999
		m.books(c.forOrder(id))
		return string(id), []string{"money_differs"}
	},
	"a payment without its entry": func(m *market) (string, []string) {
		c := m.charge(time.Hour)
		p := m.paid(time.Hour).by(c)
		m.addsOrder(p.State)
		m.books(c.forOrder(p.ID))
		return string(p.ID), []string{"paid_not_booked"}
	},
	"a payment without its entry and its charge": func(m *market) (string, []string) {
		p := m.paid(time.Hour)
		m.addsOrder(p.State)
		return string(p.ID), []string{"paid_not_charged", "paid_not_booked"}
	},
	"a payment that is booked in another currency": func(m *market) (string, []string) {
		c := m.charge(time.Hour)
		p := m.paid(time.Hour).by(c)
		m.addsOrder(p.State)
		euro, err := money.ParseCurrency("EUR")
		require.NoError(m.t, err)
		m.enterInto(p.State, euro)
		m.books(c.forOrder(p.ID))
		return string(p.ID), []string{"money_differs"}
	},
	"a payment that is booked over other money": func(m *market) (string, []string) {
		c := m.charge(time.Hour)
		p := m.paid(time.Hour).by(c)
		m.addsOrder(p.State)
		other := p.State
		other.Total = money.Of(1001, p.Total.Currency())
		do(m.t, m.Work, func(tx port.Tx) error {
			content, err := journal.NewContent(m.invoice(other), other.Total.Currency(), nil)
			require.NoError(m.t, err)
			e := journal.Book(journal.NewID(), content, "hand", p.PaidAt)
			e.PostingKey = m.invoice(p.State).PostingKey() // as if a hand had changed it later
			return tx.Journal().Post(m.t.Context(), e, func(journal.Entry) {})
		})
		m.books(c.forOrder(p.ID))
		return string(p.ID), []string{"money_differs"}
	},
	"a charge whose answer was lost": func(m *market) (string, []string) {
		id := m.pays("lost", "pm_lost_answer")
		return string(id), []string{"unresolved"}
	},
	"a charge of a running attempt whose record was deleted": func(m *market) (string, []string) {
		id := m.pays("deleted", "pm_lost_answer")
		require.NoError(m.t, Vanish(m.t.Context(), m.Work, ScopeOf(Payment(id, "deleted"+string(id)))))
		return string(id), []string{"charged_not_paid"}
	},
	"a charge of a running attempt whose record has its outcome": func(m *market) (string, []string) {
		id := m.pays("gone", "pm_lost_answer")
		scope := ScopeOf(Payment(id, "gone"+string(id)))
		do(m.t, m.Work, func(tx port.Tx) error {
			left, err := tx.Records().Find(m.t.Context(), scope)
			if err != nil {
				return err
			}
			return tx.Records().Replace(m.t.Context(), left, left.Completed(success, tx.Now(), time.Hour))
		})
		return string(id), []string{"charged_not_paid"}
	},
	"a charge of an order that is paid at another provider": func(m *market) (string, []string) {
		p := m.paid(25 * time.Hour) // so it is the charge alone that is within the time
		p.Attempt.Provider = "https://psp.example"
		m.stores(p)
		m.books(m.charge(time.Hour).forOrder(p.ID))
		return string(p.ID), []string{"charged_twice"}
	},
	"a charge of an order that another provider was asked for": func(m *market) (string, []string) {
		o := tea(m.t)
		id := m.orders(o)
		key := "asked" + string(id)
		do(m.t, m.Work, changing(m.t, o, func(o *order.Order, now time.Time) error {
			asked := order.PaymentRequest{Key: key, Money: o.State().Total, Provider: "https://psp.example"}
			_, _, err := o.BeginPayment(asked, now)
			return err
		}))
		reserved(m.t, m.Work, idempotency.Reservation{
			Scope: ScopeOf(Payment(id, key)), Request: idempotency.Request("").With("order", string(id)),
			Token: idempotency.NewToken(),
		})
		m.books(m.charge(time.Hour).forOrder(id))
		return string(id), []string{"charged_not_paid"}
	},
	"the late charge of an attempt that was written off, which the next one will find": func(m *market) (string, []string) {
		o := tea(m.t)
		id := m.orders(o)
		m.writesOff(o)
		m.begins(o)
		m.books(m.charge(time.Minute).forOrder(id))
		return string(id), []string{"unresolved"}
	},
	"the late charge of an attempt that was written off, beside the next one's": func(m *market) (string, []string) {
		o := tea(m.t)
		id := m.orders(o)
		m.writesOff(o)
		m.begins(o)
		m.books(m.charge(2 * time.Minute).forOrder(id).attempt(2))
		m.books(m.charge(time.Minute).forOrder(id))
		return string(id), []string{"charged_not_paid", "charged_twice", "unresolved"}
	},
	"a charge of an attempt that is over, while the next one runs": func(m *market) (string, []string) {
		id := m.pays("declined", "pm_declined")
		m.confirms(id, "lost again", "pm_lost_answer") // attempt 2
		m.books(m.charge(time.Minute).forOrder(id).attempt(3))
		return string(id), []string{"charged_not_paid", "charged_twice", "unresolved"}
	},
}

// market is a shop with the built-in provider, whose book this test can write into, and the comparison of both.
type market struct {
	Opened
	t       *testing.T
	shop    Shop
	book    *gateway.MemoryBook
	name    string
	lookups atomic.Int64
	turns   func(next string) string     // where the list goes on instead
	broken  error                        // why a look-up fails
	listed  func()                       // what happens when a look-up has been read
	hides   func(l payment.Booking) bool // which lines a look-up does not show
}

func openMarket(t *testing.T, s Opened) *market {
	t.Helper()
	m := &market{Opened: s, t: t, shop: OpenShop(s.Work, NewProvider()), book: gateway.NewMemoryBook(), name: "simulator"}
	m.shop.Gateway = gateway.NewSimulator(m.book, time.Now)
	return m
}

// finding is a store in which something happens before each look at a record.
type finding struct {
	port.UnitOfWork
	before func()
}

func (f finding) Read(ctx context.Context, fn func(port.Tx) error) error {
	return f.UnitOfWork.Read(ctx, func(tx port.Tx) error { return fn(findingTx{tx, f.before}) })
}

type findingTx struct {
	port.Tx
	before func()
}

func (t findingTx) Records() idempotency.Repository { return findingRecords{t.Tx.Records(), t.before} }

type findingRecords struct {
	idempotency.Repository
	before func()
}

func (r findingRecords) Find(ctx context.Context, s idempotency.Scope) (idempotency.Record, error) {
	r.before()
	return r.Repository.Find(ctx, s)
}

// Charges implements payment.Statement.
func (m *market) Charges(
	ctx context.Context, since time.Time, after string, limit int,
) ([]payment.Booking, string, error) {
	page, next, err := gateway.NewSimulator(m.book, time.Now).Charges(ctx, since, after, limit)
	if m.turns != nil {
		next = m.turns(next)
	}
	return page, next, err
}

// Lookup counts.
func (m *market) Lookup(ctx context.Context, orderID string) ([]payment.Booking, error) {
	m.lookups.Add(1)
	if m.broken != nil {
		return nil, m.broken
	}
	list, err := gateway.NewSimulator(m.book, time.Now).Lookup(ctx, orderID)
	if m.hides != nil {
		list = slices.DeleteFunc(list, m.hides)
	}
	if m.listed != nil {
		m.listed()
	}
	return list, err
}

func (m *market) invoice(s order.State) journal.SourceDocument {
	return bookkeeping.Invoice(Company, Zone, s)
}

func (m *market) reconciliation(page int) oversight.Reconciliation {
	return oversight.Reconciliation{Work: m.Beside, Provider: m, Name: m.name, Invoice: m.invoice, Page: page}
}

func (m *market) run(page int, tell func(oversight.Finding) error) oversight.Tally {
	m.t.Helper()
	tally, err := m.reconciliation(page).Run(m.t.Context(), 24*time.Hour, tell)
	require.NoError(m.t, err)
	return tally
}

// reconciled is what is found of the last 24 hours, as "kind order".
func (m *market) reconciled(page int) (found []string) {
	m.t.Helper()
	counted := map[oversight.FindingKind]int{}
	tally := m.run(page, func(f oversight.Finding) error {
		found = append(found, string(f.Kind)+" "+f.OrderID)
		assert.NotEmpty(m.t, f.Detail)
		counted[f.Kind]++
		return nil
	})
	assert.Equal(m.t, counted[oversight.Unresolved], tally.Unresolved)
	delete(counted, oversight.Unresolved)
	assert.Equal(m.t, counted, tally.Findings)
	return found
}

// orders stores an order.
func (m *market) orders(o *order.Order) order.ID {
	m.t.Helper()
	do(m.t, m.Work, func(tx port.Tx) error { return tx.Orders().Add(m.t.Context(), o) })
	return o.State().ID
}

// pays has alice place an order and pay for it.
func (m *market) pays(key, method string) order.ID {
	m.t.Helper()
	id := placed(m.t, m.shop)
	m.confirms(id, key+string(id), method)
	return id
}

// begins has the order's next attempt run under a record of its own.
func (m *market) begins(o *order.Order) {
	m.t.Helper()
	s := o.State()
	key := fmt.Sprintf("next %s", s.ID)
	do(m.t, m.Work, changing(m.t, o, func(o *order.Order, now time.Time) error {
		_, _, err := o.BeginPayment(order.PaymentRequest{Key: key, Money: s.Total}, now)
		return err
	}))
	reserved(m.t, m.Work, idempotency.Reservation{
		Scope: ScopeOf(Payment(s.ID, key)), Request: idempotency.Request("").With("order", string(s.ID)),
		Token: idempotency.NewToken(),
	})
}

// writesOff has an attempt that an operator's word has ended.
func (m *market) writesOff(o *order.Order) {
	m.t.Helper()
	do(m.t, m.Work, changing(m.t, o, func(o *order.Order, now time.Time) error {
		a, _, err := o.BeginPayment(order.PaymentRequest{Key: "k", Money: o.State().Total}, now)
		if err != nil {
			return err
		}
		return o.DeclinePayment(a.Number, payment.Decline{Code: "said", WriteOff: true})
	}))
}

func (m *market) confirms(id order.ID, key, method string) {
	m.t.Helper()
	c := Payment(id, key)
	c.Method = method
	_, _ = m.shop.ConfirmPayment(m.t.Context(), c) // what comes of it stands in order and book
}

// handmade is a PAID order that no use case has made.
type handmade struct{ order.State }

func (m *market) paid(ago time.Duration) handmade {
	m.t.Helper()
	s := paidOrder(m.t)
	s.PaidAt = time.Now().UTC().Truncate(time.Microsecond).Add(-ago)
	return handmade{s}
}

func (h handmade) by(c line) handmade {
	h.ChargeID = c.ChargeID
	return h
}

// stores stores the order and its entry.
func (m *market) stores(h handmade) {
	m.t.Helper()
	m.storesAll([]order.State{h.State})
}

func (m *market) storesAll(states []order.State) {
	m.t.Helper()
	for batch := range slices.Chunk(states, 500) {
		do(m.t, m.Work, func(tx port.Tx) error {
			for _, s := range batch {
				if err := tx.Orders().Add(m.t.Context(), order.Rehydrate(s)); err != nil {
					return err
				}
				if err := m.post(tx, s, s.Total.Currency()); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (m *market) addsOrder(s order.State) { m.orders(order.Rehydrate(s)) }

func (m *market) enterInto(s order.State, c money.Currency) {
	m.t.Helper()
	do(m.t, m.Work, func(tx port.Tx) error { return m.post(tx, s, c) })
}

func (m *market) post(tx port.Tx, s order.State, c money.Currency) error {
	content, err := journal.NewContent(m.invoice(s), c, nil)
	if err != nil {
		return err
	}
	e := journal.Book(journal.NewID(), content, "hand", s.PaidAt)
	return tx.Journal().Post(m.t.Context(), e, func(journal.Entry) {})
}

// line is a line of the provider's book that no use case has asked for.
type line struct{ gateway.Line }

func (m *market) charge(ago time.Duration) line {
	return line{gateway.Line{
		Attempt: 1, Amount: 1000, Currency: "JPY", Status: gateway.Approved, ChargeID: "ch_" + string(order.NewID()),
		BookedAt: time.Now().UTC().Truncate(time.Microsecond).Add(-ago),
	}}
}

func (l line) forOrder(id order.ID) line {
	l.OrderID = string(id)
	return l.attempt(1)
}

func (l line) attempt(n int) line {
	l.Attempt, l.GatewayKey = n, fmt.Sprintf("%s:%d", l.OrderID, n)
	return l
}

func (m *market) books(l line) {
	m.t.Helper()
	_, entered, err := m.book.Enter(m.t.Context(), l.Line)
	require.NoError(m.t, err)
	require.True(m.t, entered)
}
