package httpapi

// Codes are the published problem codes, in their order.
func Codes() (codes []string) {
	for _, p := range problems {
		codes = append(codes, string(p.code))
	}
	return codes
}

// Titles are the problem documents' titles, by code.
func Titles() map[string]string {
	titles := make(map[string]string, len(problems))
	for _, p := range problems {
		titles[string(p.code)] = p.title
	}
	return titles
}
