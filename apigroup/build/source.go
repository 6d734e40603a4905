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

// maxDockerfileBytes is the maximum size of an inline Dockerfile in a build, in bytes.
const maxDockerfileBytes = 60 * 1000

func (v validator) source(source *buildv1.BuildSource, at *field.Path) (errs field.ErrorList) {
	if source.Git != nil && source.Binary != nil {
		errs = append(errs, field.Invalid(at, "<source>", "may not set git when binary is also specified"))
	}
	if source.Git != nil {
		errs = append(errs, validateGit(source.Git, at.Child("git"))...)
	}
	if binary := source.Binary; binary != nil && binary.AsFile != "" {
		if name := path.Base(binary.AsFile); name != binary.AsFile || name == "." || name == ".." {
			errs = append(errs, field.Invalid(at.Child("binary", "asFile"), binary.AsFile, "may not contain any directories"))
		}
	}
	if source.Dockerfile != nil && len(*source.Dockerfile) > maxDockerfileBytes {
		errs = append(errs, field.TooLong(at.Child("dockerfile"), "", maxDockerfileBytes))
	}
	errs = append(errs, validateLocalPath(source.ContextDir, at.Child("contextDir"))...)
	for i := range source.Images {
		errs = append(errs, validateImageSource(&source.Images[i], at.Child("images").Index(i))...)
	}
	for i := range source.Secrets {
		in := at.Child("secrets").Index(i)
		errs = append(errs, validateSecret(&source.Secrets[i].Secret, in.Child("secret"))...)
		errs = append(errs, validateLocalPath(source.Secrets[i].DestinationDir, in.Child("destinationDir"))...)
	}
	for i := range source.ConfigMaps {
		in := at.Child("configMaps").Index(i)
		if source.ConfigMaps[i].ConfigMap.Name == "" {
			errs = append(errs, field.Required(in.Child("configMap", "name"), "set the name of the config map"))
		}
		errs = append(errs, validateLocalPath(source.ConfigMaps[i].DestinationDir, in.Child("destinationDir"))...)
	}
	return append(errs, validateSecret(source.SourceSecret, at.Child("sourceSecret"))...)
}

// remote matches host:path and user@host:path, which Git supports in addition to URLs.
var remote = regexp.MustCompile(`^[^/\s]+@?[^/\s]*:[^\s]+$`)

// spaceOrControl reports whether a character is a space or a control character, which a URL must
// not contain.
func spaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func validateGit(git *buildv1.GitBuildSource, at *field.Path) (errs field.ErrorList) {
	if git.URI == "" {
		errs = append(errs, field.Required(at.Child("uri"), "set the URL of the repository"))
	} else if _, err := url.Parse(git.URI); err != nil && !remote.MatchString(git.URI) || strings.ContainsFunc(git.URI, spaceOrControl) {
		errs = append(errs, field.Invalid(at.Child("uri"), git.URI, "uri is not a valid url"))
	}
	for name, proxy := range map[string]*string{"httpProxy": git.HTTPProxy, "httpsProxy": git.HTTPSProxy} {
		if proxy == nil || *proxy == "" {
			continue
		}
		if parsed, err := url.Parse(*proxy); err != nil || parsed.Scheme == "" || parsed.Host == "" {
			errs = append(errs, field.Invalid(at.Child(name), "redacted", "proxy is not a valid url"))
		}
	}
	return errs
}

// validateLocalPath rejects paths outside the build's directory.
func validateLocalPath(relative string, at *field.Path) field.ErrorList {
	clean := path.Clean(relative)
	switch {
	case relative == "":
	case path.IsAbs(relative):
		return field.ErrorList{field.Invalid(at, relative, "must be a relative path")}
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return field.ErrorList{field.Invalid(at, relative, "must not be a path outside of the current directory")}
	}
	return nil
}

func validateImageSource(source *buildv1.ImageSource, at *field.Path) (errs field.ErrorList) {
	errs = append(errs, validateReference(&source.From, at.Child("from"), tagKind, imageKind, dockerKind)...)
	errs = append(errs, validateSecret(source.PullSecret, at.Child("pullSecret"))...)
	if len(source.Paths) == 0 && len(source.As) == 0 {
		errs = append(errs, field.Required(at.Child("paths"), "set the paths to copy from the image"))
	}
	for i, imagePath := range source.Paths {
		in := at.Child("paths").Index(i)
		if !path.IsAbs(imagePath.SourcePath) {
			errs = append(errs, field.Invalid(in.Child("sourcePath"), imagePath.SourcePath, "must be an absolute path"))
		}
		if imagePath.DestinationDir == "" {
			errs = append(errs, field.Required(in.Child("destinationDir"), "set the target directory"))
		}
		errs = append(errs, validateLocalPath(imagePath.DestinationDir, in.Child("destinationDir"))...)
	}
	for i, name := range source.As {
		if name == "" {
			errs = append(errs, field.Required(at.Child("as").Index(i), "set the name of an image in the Dockerfile"))
		}
	}
	return errs
}
