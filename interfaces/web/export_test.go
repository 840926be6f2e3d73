package web

// Texts has every text of a language.
func Texts(l Language) map[string]string { return texts[l] }
