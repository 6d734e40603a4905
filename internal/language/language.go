// Package language recognizes the programming language of source code by its file names, as
// OpenShift 3's `oc new-app` does.
package language

import (
	"path"
	"slices"
)

// languages lists the files that identify each language, in the order in which Of checks them.
var languages = []struct {
	name  string
	files []string
}{
	{"jee", []string{"pom.xml"}},
	{"ruby", []string{"Gemfile", "Rakefile", "config.ru"}},
	{"nodejs", []string{"app.json", "package.json"}},
	{"php", []string{"composer.json", "index.php"}},
	{"python", []string{"requirements.txt", "setup.py"}},
	{"perl", []string{"cpanfile", "index.pl"}},
	{"scala", []string{"build.sbt"}},
	{"dotnet", []string{"project.json", "*.csproj"}},
	{"golang", []string{"go.mod", "Godeps", "main.go"}},
}

// Of returns the language of a directory that contains files with the given names, or "".
func Of(names []string) string {
	for _, language := range languages {
		if slices.ContainsFunc(language.files, func(pattern string) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				matches, _ := path.Match(pattern, name) // the patterns are valid
				return matches
			})
		}) {
			return language.name
		}
	}
	return ""
}
