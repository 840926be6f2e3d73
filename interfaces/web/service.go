package web

// The pages that belong to the service itself: how to connect, what a key is, what a problem means.
var (
	Start   = NewPage(files, "pages/start.html")   // shows StartContent
	Policy  = NewPage(files, "pages/policy.html")  // shows PolicyContent
	Problem = NewPage(files, "pages/problem.html") // shows ProblemContent
	// Reference shows a reference.Reader, which imports this package.
	Reference = NewPage(files, "pages/reference.html")
)

// StartContent is how to connect.
type StartContent struct {
	Place, Confirm string // command lines
	Token          string
}

// PolicyContent is what of the policy is configured, and an example.
type PolicyContent struct {
	MaxLength        int // of a key, in characters
	Retention, Lease string
	Example          string // command lines
}

// ProblemContent is a problem whose texts are under "problem.code.<Code>".
type ProblemContent struct {
	Code, Status, Retry string
	Example             string // a problem document of this kind
}
