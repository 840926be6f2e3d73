package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"kakutei/application/oversight"
	"kakutei/application/port"
)

const (
	pathAudit = "/api/audit"

	defaultAuditPage = 100
)

// getAudit answers GET /api/audit?after=…&limit=…&kind=….
func (s *Server) getAudit(c echo.Context) error {
	if _, err := s.operator(c); err != nil {
		return err
	}
	query, err := queryOf(c.Request(), "after", "limit", "kind")
	if err != nil {
		return err
	}
	asked, err := auditQuery(query)
	if err != nil {
		return err
	}
	page, err := s.config.Desk.Audit(c.Request().Context(), asked)
	if errors.Is(err, oversight.ErrCursor) {
		return invalidQuery("the parameter after is the id of no audit entry that ever was")
	}
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, page)
}

func auditQuery(query url.Values) (oversight.AuditQuery, error) {
	asked := oversight.AuditQuery{After: query.Get("after"), Limit: defaultAuditPage}
	if query.Has("after") && asked.After == "" {
		return asked, invalidQuery("the parameter after is empty")
	}
	if query.Has("limit") {
		text := query.Get("limit")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > oversight.MaxPage || strconv.Itoa(n) != text {
			return asked, invalidQuery("the parameter limit must be 1 to %d", oversight.MaxPage)
		}
		asked.Limit = n
	}
	if query.Has("kind") {
		asked.Kind = port.AuditKind(query.Get("kind"))
		if !slices.Contains(port.AuditKinds, asked.Kind) {
			return asked, invalidQuery("the parameter kind must be one of %v", port.AuditKinds)
		}
	}
	return asked, nil
}
