package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/bookkeeping"
	"kakutei/domain/fault"
	"kakutei/domain/journal"
)

const (
	paramEntry = "journalEntryId"

	pathEntries = "/api/journal-entries"
	pathEntry   = pathEntries + "/:" + paramEntry
	pathPost    = pathEntries + "/post"

	headerPrefer            = "Prefer" // RFC 7240
	headerPreferenceApplied = "Preference-Applied"
	strictHandling          = "handling=strict"
)

// recipeDetails name the entry that stands.
type recipeDetails struct {
	OriginalJournalEntryID journal.ID         `json:"originalJournalEntryId"`
	OriginalTimestamp      time.Time          `json:"originalTimestamp"`
	IdempotencyKey         journal.PostingKey `json:"idempotencyKey"`
}

// postEntry answers POST /api/journal-entries/post. The key follows from the document: an Idempotency-Key header is not
// looked at.
func (s *Server) postEntry(c echo.Context) error {
	caller, err := s.customer(c)
	if err != nil {
		return err
	}
	if _, err := queryOf(c.Request()); err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	content, err := ReadPosting(body)
	if err != nil {
		return err
	}
	if !slices.Contains(caller.Companies, content.Source.Company) {
		return errForbidden.Saying("this token may not post for the company")
	}
	posted, err := s.config.Ledger.PostJournalEntry(c.Request().Context(), bookkeeping.PostJournalEntry{
		By: caller.Actor, Content: content,
	})
	if f, isFault := fault.From(err); isFault && f.Is(journal.ErrMismatch) && posted.Entry.ID != "" {
		return standing(f, "DUPLICATE_OPERATION_MISMATCH", posted.Entry)
	}
	if err != nil {
		return err
	}
	return sendPosted(c, posted)
}

func sendPosted(c echo.Context, posted bookkeeping.Posted) error {
	header := c.Response().Header()
	if !posted.Repeated {
		header.Set(echo.HeaderLocation, pathEntries+"/"+string(posted.Entry.ID))
		return sendView(c, http.StatusCreated, posted.View())
	}
	header.Set(headerReplayed, "true")
	if prefersStrict(c.Request().Header) {
		header.Set(headerPreferenceApplied, strictHandling)
		return standing(journal.ErrDuplicate, "DUPLICATE_OPERATION", posted.Entry)
	}
	return sendView(c, http.StatusOK, posted.View())
}

// standing is the fault with the recipe's member about the entry that stands.
func standing(f *fault.Fault, code string, e journal.Entry) error {
	return f.With(memberError, recipeError{
		Code: code, Message: f.Detail(), Details: &recipeDetails{
			OriginalJournalEntryID: e.ID, OriginalTimestamp: e.PostedAt, IdempotencyKey: e.PostingKey,
		},
	})
}

// prefersStrict tells whether a preference handling=strict is among those given. The first one of a name counts; names
// ignore case, values do not (RFC 7240 §2).
func prefersStrict(h http.Header) bool {
	for preference := range strings.SplitSeq(strings.Join(h[headerPrefer], ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") {
			return strings.Trim(strings.TrimSpace(value), `"`) == "strict"
		}
	}
	return false
}

// getEntry answers GET /api/journal-entries/{journalEntryId}.
func (s *Server) getEntry(c echo.Context) error {
	caller, err := s.customer(c)
	if err != nil {
		return err
	}
	if _, err := queryOf(c.Request()); err != nil {
		return err
	}
	view, err := s.config.Ledger.Entry(c.Request().Context(), pathName(c, paramEntry), caller.Companies)
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, view)
}
