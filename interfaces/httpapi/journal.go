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
	for _, line := range h[headerPrefer] {
		for more := true; more; {
			var preference string
			preference, line, more = cutUnquoted(line, ',')
			preference, _, _ = cutUnquoted(preference, ';')
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(blankless(name), "handling") {
				return unquoted(blankless(value)) == "strict"
			}
		}
	}
	return false
}

// cutUnquoted is strings.Cut at a separator that is in no quoted string (RFC 9110 §5.6.4).
func cutUnquoted(text string, separator byte) (before, after string, found bool) {
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case c == separator && !inside:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// unquoted is what a quoted string stands for; every other text is itself. A backslash stands for what follows it.
func unquoted(text string) string {
	last := len(text) - 1
	if last < 1 || text[0] != '"' || text[last] != '"' {
		return text
	}
	var content strings.Builder
	for i := 1; i < last; i++ {
		if text[i] == '\\' {
			i++
		}
		content.WriteByte(text[i])
	}
	return content.String()
}

func blankless(text string) string { return strings.Trim(text, " \t") }

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
