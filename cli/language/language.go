// Package language prevents kubectl from reading a dictionary if its texts are already in the right
// language.
//
// The import of this package has the effect. kubectl's packages translate their texts while they
// are initialized, and the first of them reads a dictionary. The one for English translates each
// text to itself, which takes a third of the client's start time. Go initializes packages in the
// order of their paths once their imports are ready, so this package precedes kubectl's.
package language

import (
	"os"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

// Late is an error if kubectl read a dictionary before the initialization of this package.
var Late = i18n.SetLoadTranslationsFunc(func() error {
	if english(os.Getenv) {
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
})

// english reports whether the environment's locale is English or unset.
func english(getenv func(string) string) bool {
	for _, variable := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale := getenv(variable); locale != "" {
			name, _, _ := strings.Cut(locale, ".")
			return name == "C" || name == "POSIX" || name == "en" || strings.HasPrefix(name, "en_")
		}
	}
	return true
}
