// Package language prevents kubectl from loading a translation dictionary if the locale is English
// or unset. It must be imported for its side effect.
//
// kubectl's packages translate their messages during initialization, and the first translation
// loads a dictionary. The English dictionary translates each message to itself, but loading it
// takes a third of the client's start time. Go initializes packages in the order of their import
// paths, as soon as their own imports are initialized. Therefore, this package is initialized
// before kubectl's packages.
package language

import (
	"os"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

// Late is an error if kubectl loaded a dictionary before this package was initialized. Otherwise,
// it is nil.
var Late = i18n.SetLoadTranslationsFunc(func() error {
	if english(os.Getenv) {
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
})

// english reports whether the locale in the environment is English or unset.
func english(getenv func(string) string) bool {
	for _, variable := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale := getenv(variable); locale != "" {
			name, _, _ := strings.Cut(locale, ".")
			return name == "C" || name == "POSIX" || name == "en" || strings.HasPrefix(name, "en_")
		}
	}
	return true
}
