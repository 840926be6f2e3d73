package reference

import "kakutei/interfaces/web"

// Translations have the texts of the document in a language, by the English ones.
func Translations(l web.Language) map[string]string { return translations[l] }
