package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
	"kakutei/application/port"
	"kakutei/domain/journal"
	"kakutei/domain/money"
	"kakutei/domain/order"
)

// booking is what becomes of postings that meet, and of payments that book themselves.
var booking = []check{
	{"of a hundred postings of ten documents at once ten are booked, and everyone is told which", func(
		t *testing.T, s Opened,
	) {
		const posts, documents = 100, 10
		var mine, told [posts]journal.Entry
		var failed [posts]error
		for i := range mine {
			mine[i] = invoice(t, string(rune('a'+i%documents)))
		}
		atOnce(posts, func(i int) { told[i], failed[i] = post(t.Context(), s.either(i/documents), mine[i]) })

		standing := map[journal.PostingKey]journal.Entry{}
		for i, stands := range told {
			require.NoError(t, failed[i])
			if stands.ID == mine[i].ID {
				require.NotContains(t, standing, stands.PostingKey, "two are told that theirs is booked")
				standing[stands.PostingKey] = mine[i]
			}
		}
		require.Len(t, standing, documents)
		for i, stands := range told {
			assert.Equal(t, standing[mine[i].PostingKey], stands)
			assert.Equal(t, stands, entryIn(t, s.either(i), stands.ID))
		}
	}},
	{"who posts a document while another does is told what the other has booked", func(t *testing.T, s Opened) {
		first, second := invoice(t, "inv-1"), invoice(t, "inv-1")
		commit := hold(t, s.Work, func(tx port.Tx) error { return sendingPost(t, tx, first) })
		assertNoEntry(t, s.Beside, first.ID)
		told := postingOf(t, s.Beside, second)
		commit()
		assert.Equal(t, first, <-told)
		assertNoEntry(t, s.Beside, second.ID)
	}},
	{"who posts a document while another fails to has booked it", func(t *testing.T, s Opened) {
		first, second := invoice(t, "inv-1"), invoice(t, "inv-1")
		var told <-chan journal.Entry
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := sendingPost(t, tx, first); err != nil {
				return err
			}
			told = postingOf(t, s.Beside, second)
			return errStep
		}), errStep)
		assert.Equal(t, second, <-told)
		assertNoEntry(t, s.Work, first.ID)
	}},
	{"an order that is paid and its entry are both there, or both not", func(t *testing.T, s Opened) {
		o, e := added(t, s.Work), invoice(t, "inv-1")
		payingAndBooking := func(tx port.Tx) error {
			if err := tx.Journal().Post(t.Context(), e, func(journal.Entry) {}); err != nil {
				return err
			}
			return changing(t, o, paying("k"))(tx)
		}
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := payingAndBooking(tx); err != nil {
				return err
			}
			return errStep
		}), errStep)
		assert.Equal(t, order.Placed, orderIn(t, s.Beside, o.State().ID).Status)
		assertNoEntry(t, s.Beside, e.ID)

		do(t, s.Work, payingAndBooking)
		assert.Equal(t, order.Paid, orderIn(t, s.Beside, o.State().ID).Status)
		assert.Equal(t, e, entryIn(t, s.Beside, e.ID))
	}},
	{"a payment that loses its record books nothing", func(t *testing.T, s Opened) {
		o, e := added(t, s.Work), invoice(t, "inv-1")
		held := reserved(t, s.Work, reservation("k"))
		do(t, s.Beside, func(tx port.Tx) error {
			return tx.Records().Replace(t.Context(), held, held.TakenBy(reservation("k"), tx.Now(), time.Minute))
		})
		require.Error(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := changing(t, o, paying("k"))(tx); err != nil {
				return err
			}
			if err := tx.Journal().Post(t.Context(), e, func(journal.Entry) {}); err != nil {
				return err
			}
			return tx.Records().Replace(t.Context(), held, held.Completed(success, tx.Now(), time.Hour))
		}))
		assertNoEntry(t, s.Beside, e.ID)
	}},
	{"a payment whose entry is refused is not recorded", func(t *testing.T, s Opened) {
		o, e := added(t, s.Work), invoice(t, "inv-1")
		e.Lines = lines(999, "a", "b")
		require.Error(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := tx.Journal().Post(t.Context(), e, func(journal.Entry) {}); err != nil {
				return err
			}
			return changing(t, o, paying("k"))(tx)
		}))
		assert.Equal(t, order.Placed, orderIn(t, s.Beside, o.State().ID).Status)
	}},
	{"a confirmed payment is one entry of the shop's, whoever confirms it and how often", func(t *testing.T, s Opened) {
		here, there, _ := twoShops(s)
		id := placed(t, here)
		confirmAtOnce(t, 20, here, there, paymentOf(id, "k"))
		_, err := there.ConfirmPayment(t.Context(), Payment(id, "another key"))
		require.NoError(t, err)

		paid := orderIn(t, s.Work, id)
		want := invoiceOf(t, paid)
		stands := postAgain(t, s, want)
		assert.True(t, stands.Repeated)
		assert.Equal(t, want, stands.Entry.Content)
		assert.Equal(t, alice, stands.Entry.PostedBy)
		assert.Equal(t, paid.PaidAt, stands.Entry.PostedAt)
		for _, seen := range []*Seen{here.Seen, there.Seen} {
			assert.Zero(t, seen.Count(port.Mismatch))
			for _, e := range seen.Of(port.Duplicate) { // the second key's, about the order
				assert.Equal(t, ScopeOf(Payment(id, "another key")), e.Scope)
			}
		}
	}},
	{"an order that is not paid is not booked", func(t *testing.T, s Opened) {
		here, _, _ := twoShops(s)
		declined := Payment(placed(t, here), "declined")
		declined.Method = DeclinedMethod
		_, err := here.ConfirmPayment(t.Context(), declined)
		require.NoError(t, err)
		unpaid := orderIn(t, s.Work, order.ID(declined.OrderID))
		unpaid.PaidAt = instant(0)
		assert.False(t, postAgain(t, s, invoiceOf(t, unpaid)).Repeated)
	}},
}

// invoiceOf is the content that an order's payment books.
func invoiceOf(t *testing.T, paid order.State) journal.Content {
	t.Helper()
	content, err := journal.NewContent(journal.SourceDocument{
		Company: Company, Type: journal.SalesInvoice, ID: string(paid.ID),
		ServiceDate: journal.DateIn(Zone, paid.PaidAt), Total: paid.Total.Units(),
	}, money.JPY, nil)
	require.NoError(t, err)
	return content
}

// postAgain shows what stands for a document.
func postAgain(t *testing.T, s Opened, c journal.Content) bookkeeping.Posted {
	t.Helper()
	ledger := bookkeeping.Ledger{Work: s.Beside, Observer: &Seen{}, Deadline: time.Minute}
	posted, err := ledger.PostJournalEntry(t.Context(), bookkeeping.PostJournalEntry{By: "auditor", Content: c})
	require.NoError(t, err)
	return posted
}

// postingOf posts while the caller goes on, and hands over what stands then: nothing, if the posting fails.
func postingOf(t *testing.T, w port.UnitOfWork, e journal.Entry) <-chan journal.Entry {
	t.Helper()
	told := make(chan journal.Entry, 1)
	go func() {
		stands, err := post(t.Context(), w, e)
		assert.NoError(t, err)
		told <- stands
	}()
	return told
}
