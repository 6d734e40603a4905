// Package language keeps kubectl from reading a dictionary where its texts are in the right
// language already.
//
// Importing it is what counts. kubectl's packages translate their texts while they are initialized,
// and the first that does reads a whole dictionary, for English too, whose dictionary translates
// each text into itself: a third of what the start of the client takes. Go initializes packages
// whose imports are ready in the order of their paths, and ours are before kubectl's.
package language

import (
	"os"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

// Late is an error if kubectl had read a dictionary before this package was initialized.
var Late = i18n.SetLoadTranslationsFunc(func() error {
	if english(os.Getenv) {
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
})

// english reports whether the environment asks for kubectl's texts as they are: by a locale of
// English, or by none.
func english(getenv func(string) string) bool {
	for _, variable := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale := getenv(variable); locale != "" {
			name, _, _ := strings.Cut(locale, ".")
			return name == "C" || name == "POSIX" || name == "en" || strings.HasPrefix(name, "en_")
		}
	}
	return true
}
