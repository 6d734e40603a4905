package build

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDockerfile is how long a Dockerfile within a build may be, in bytes.
const maxDockerfile = 60 * 1000

func (v validator) source(source *buildv1.BuildSource, at *field.Path) (problems field.ErrorList) {
	if source.Git != nil && source.Binary != nil {
		problems = append(problems, field.Invalid(at, "<source>", "may not set git when binary is also specified"))
	}
	if source.Git != nil {
		problems = append(problems, validateGit(source.Git, at.Child("git"))...)
	}
	if binary := source.Binary; binary != nil && binary.AsFile != "" {
		if name := path.Base(binary.AsFile); name != binary.AsFile || name == "." || name == ".." {
			problems = append(problems, field.Invalid(at.Child("binary", "asFile"), binary.AsFile, "may not contain any directories"))
		}
	}
	if source.Dockerfile != nil && len(*source.Dockerfile) > maxDockerfile {
		problems = append(problems, field.TooLong(at.Child("dockerfile"), "", maxDockerfile))
	}
	problems = append(problems, validateInside(source.ContextDir, at.Child("contextDir"))...)
	for i := range source.Images {
		problems = append(problems, validateImageSource(&source.Images[i], at.Child("images").Index(i))...)
	}
	for i := range source.Secrets {
		in := at.Child("secrets").Index(i)
		problems = append(problems, validateSecret(&source.Secrets[i].Secret, in.Child("secret"))...)
		problems = append(problems, validateInside(source.Secrets[i].DestinationDir, in.Child("destinationDir"))...)
	}
	for i := range source.ConfigMaps {
		in := at.Child("configMaps").Index(i)
		if source.ConfigMaps[i].ConfigMap.Name == "" {
			problems = append(problems, field.Required(in.Child("configMap", "name"), "name the configuration map"))
		}
		problems = append(problems, validateInside(source.ConfigMaps[i].DestinationDir, in.Child("destinationDir"))...)
	}
	return append(problems, validateSecret(source.SourceSecret, at.Child("sourceSecret"))...)
}

// remote matches the form user@host:path, which git reads beside URLs.
var remote = regexp.MustCompile(`^[^/\s]+@?[^/\s]*:[^\s]+$`)

// spaceOrControl reports whether a character may not be part of a URL.
func spaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func validateGit(git *buildv1.GitBuildSource, at *field.Path) (problems field.ErrorList) {
	if git.URI == "" {
		problems = append(problems, field.Required(at.Child("uri"), "where the source is"))
	} else if _, err := url.Parse(git.URI); err != nil && !remote.MatchString(git.URI) || strings.ContainsFunc(git.URI, spaceOrControl) {
		problems = append(problems, field.Invalid(at.Child("uri"), git.URI, "uri is not a valid url"))
	}
	for name, proxy := range map[string]*string{"httpProxy": git.HTTPProxy, "httpsProxy": git.HTTPSProxy} {
		if proxy == nil || *proxy == "" {
			continue
		}
		if parsed, err := url.Parse(*proxy); err != nil || parsed.Scheme == "" || parsed.Host == "" {
			problems = append(problems, field.Invalid(at.Child(name), "redacted", "proxy is not a valid url"))
		}
	}
	return problems
}

// validateInside refuses a path that leads out of the build's directory.
func validateInside(relative string, at *field.Path) field.ErrorList {
	cleaned := path.Clean(relative)
	switch {
	case relative == "":
	case path.IsAbs(relative):
		return field.ErrorList{field.Invalid(at, relative, "must be a relative path")}
	case cleaned == ".." || strings.HasPrefix(cleaned, "../"):
		return field.ErrorList{field.Invalid(at, relative, "must not be a path outside of the current directory")}
	}
	return nil
}

func validateImageSource(source *buildv1.ImageSource, at *field.Path) (problems field.ErrorList) {
	problems = append(problems, validateReference(&source.From, at.Child("from"), tagKind, imageKind, dockerKind)...)
	problems = append(problems, validateSecret(source.PullSecret, at.Child("pullSecret"))...)
	if len(source.Paths) == 0 && len(source.As) == 0 {
		problems = append(problems, field.Required(at.Child("paths"), "what is taken from the image"))
	}
	for i, taken := range source.Paths {
		in := at.Child("paths").Index(i)
		if !path.IsAbs(taken.SourcePath) {
			problems = append(problems, field.Invalid(in.Child("sourcePath"), taken.SourcePath, "must be an absolute path"))
		}
		if taken.DestinationDir == "" {
			problems = append(problems, field.Required(in.Child("destinationDir"), "where it is put"))
		}
		problems = append(problems, validateInside(taken.DestinationDir, in.Child("destinationDir"))...)
	}
	for i, name := range source.As {
		if name == "" {
			problems = append(problems, field.Required(at.Child("as").Index(i), "name an image of the Dockerfile"))
		}
	}
	return problems
}
