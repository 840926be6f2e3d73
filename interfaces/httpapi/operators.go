package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"kakutei/application/checkout"
	"kakutei/domain/fault"
	"kakutei/domain/idempotency"
)

const (
	pathUnresolved = "/api/unresolved"
	pathRelease    = pathUnresolved + "/release"
	pathResolve    = pathUnresolved + "/resolve"
)

// getUnresolved answers GET /api/unresolved.
func (s *Server) getUnresolved(c echo.Context) error {
	if _, err := s.operator(c); err != nil {
		return err
	}
	if _, err := queryOf(c.Request()); err != nil {
		return err
	}
	list, err := s.config.Desk.Unresolved(c.Request().Context())
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, list)
}

// postRelease answers POST /api/unresolved/release.
func (s *Server) postRelease(c echo.Context) error {
	operator, body, err := s.operatorsWord(c)
	if err != nil {
		return err
	}
	var named scopeForm
	if err := decode(body, named.members()...); err != nil {
		return err
	}
	view, err := s.config.Desk.Release(c.Request().Context(), named.scope(), operator)
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, view)
}

// postResolve answers POST /api/unresolved/resolve.
func (s *Server) postResolve(c echo.Context) error {
	operator, body, err := s.operatorsWord(c)
	if err != nil {
		return err
	}
	said, err := resolutionIn(body)
	if err != nil {
		return err
	}
	said.By = operator
	view, err := s.config.Till.Resolve(c.Request().Context(), said)
	if err != nil {
		return err
	}
	return sendView(c, http.StatusOK, view)
}

// operatorsWord makes the checks 2 to 7: who speaks, and the body.
func (s *Server) operatorsWord(c echo.Context) (operator string, body []byte, err error) {
	operator, err = s.operator(c)
	if err != nil {
		return "", nil, err
	}
	if _, err := queryOf(c.Request()); err != nil {
		return "", nil, err
	}
	body, err = readBody(c)
	return operator, body, err
}

// scopeForm names a record. A name that no record can have names none: that is for the store to say.
type scopeForm struct{ operation, actor, key string }

func (f *scopeForm) members() []member {
	return []member{
		required("operation", text(&f.operation)),
		required("actor", text(&f.actor)),
		required("idempotencyKey", text(&f.key)),
	}
}

func (f *scopeForm) scope() idempotency.Scope {
	return idempotency.Scope{
		Operation: idempotency.Operation(f.operation), Actor: f.actor, Key: idempotency.Key(f.key),
	}
}

const (
	outcomeCharged    = "charged"
	outcomeNotCharged = "not_charged"
)

func resolutionIn(body []byte) (checkout.Resolution, error) {
	var named scopeForm
	var outcome, chargeID, note string
	err := decode(body, append(named.members(),
		required("outcome", plain(&outcome)),
		optional("chargeId", text(&chargeID)),
		required("note", text(&note)),
	)...)
	if err != nil {
		return checkout.Resolution{}, err
	}
	return NewResolution(named.scope(), outcome, chargeID, note)
}

// NewResolution is an operator's word. The error is a fault.Invalid that names what is wrong.
func NewResolution(scope idempotency.Scope, outcome, chargeID, note string) (checkout.Resolution, error) {
	refuse := func(field, detail string) (checkout.Resolution, error) {
		return checkout.Resolution{}, fault.Invalid(fault.Violation{Field: field, Detail: detail})
	}
	for field, said := range map[string]string{"chargeId": chargeID, "note": note} {
		if wrong := wrongText(said); said != "" && wrong != "" {
			return refuse(field, wrong)
		}
	}
	switch {
	case outcome != outcomeCharged && outcome != outcomeNotCharged:
		return refuse("outcome", "must be "+outcomeCharged+" or "+outcomeNotCharged)
	case outcome == outcomeCharged && chargeID == "":
		return refuse("chargeId", "is required with "+outcomeCharged)
	case outcome == outcomeNotCharged && chargeID != "":
		return refuse("chargeId", "is not for "+outcomeNotCharged)
	case note == "":
		return refuse("note", "is required")
	}
	return checkout.Resolution{
		Scope: scope, Charged: outcome == outcomeCharged, ChargeID: chargeID, Note: note,
	}, nil
}
