package newapp

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Component is one argument: an image, a template or source, or a builder image with the source
// that it builds.
type Component struct {
	// From is the image, image stream or template. It is empty if the component contains only
	// source.
	From string
	// Kind restricts what From can refer to if From is the value of a flag. In all other cases, it
	// is AnyKind.
	Kind Kind
	// Source is a Git URL, a local directory, or empty.
	Source string
	// Group identifies the pod that runs the component's container. Components with the same number
	// share a pod.
	Group int
}

// Kind is the type of object that a component's From refers to.
type Kind int

// The kinds that flags can select.
const (
	AnyKind Kind = iota
	ImageKind
	StreamKind
	TemplateKind
	FileKind
)

// Arguments splits arguments into environment variables such as KEY=VALUE, and components. The
// argument image~source represents a builder with its source. The argument a+b represents two
// containers in the same pod.
func Arguments(args []string) (components []Component, variables []string, err error) {
	group := 0
	for _, arg := range args {
		if variable.MatchString(arg) {
			variables = append(variables, arg)
			continue
		}
		group++
		for _, text := range together(arg) {
			component, err := parse(text)
			if err != nil {
				return nil, nil, err
			}
			component.Group = group
			components = append(components, component)
		}
	}
	return components, variables, nil
}

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*=`)
	remote   = regexp.MustCompile(`^((https?|git|ssh|file)://|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:)`)
)

// together splits an argument at its plus signs, except for plus signs in a path or URL.
func together(arg string) []string {
	if IsSource(arg) {
		return []string{arg}
	}
	var parts []string
	for part := range strings.SplitSeq(arg, "+") {
		last := len(parts) - 1
		if last >= 0 && strings.ContainsAny(parts[last], "~") && !IsSource(source(parts[last])) {
			parts[last] += "+" + part
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// source returns the text after the first ~, or "" if there is none.
func source(text string) string {
	_, after, _ := strings.Cut(text, "~")
	return after
}

func parse(text string) (Component, error) {
	if IsSource(text) {
		return Component{Source: text}, nil
	}
	from, of, ok := strings.Cut(text, "~")
	switch {
	case from == "":
		return Component{}, fmt.Errorf("parse %q: specify an image name before the ~", text)
	case ok && of == "":
		return Component{}, fmt.Errorf("parse %q: specify the source after the ~", text)
	case ok && !IsSource(of):
		return Component{}, fmt.Errorf("parse %q: %q is neither a Git URL nor a directory", text, of)
	}
	if info, err := os.Stat(from); err == nil && !ok && info.Mode().IsRegular() {
		return Component{From: from, Kind: FileKind}, nil
	}
	return Component{From: from, Source: of}, nil
}

// IsSource reports whether an argument is a Git URL or a local directory, optionally followed by #
// and a Git reference. A directory must be "." or ".." or contain a slash.
func IsSource(text string) bool {
	if remote.MatchString(text) {
		return true
	}
	path, _, _ := strings.Cut(text, "#")
	info, err := os.Stat(path)
	return err == nil && info.IsDir() && (strings.ContainsAny(path, `/\`) || path == "." || path == "..")
}

// HasSource reports whether an argument contains source: either source alone, or a builder with
// source.
func HasSource(text string) bool { return IsSource(text) || IsSource(source(text)) }

// secureCopy matches the URL of a repository that Git accesses over SSH, such as
// git@example.com:app.git.
var secureCopy = regexp.MustCompile(`^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^@]*$`)

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// Name derives an object name from an image or repository. The result is also a valid service name.
// It is "" if from contains no valid characters.
func Name(from string) string {
	from, _, _ = strings.Cut(from, "#")
	from = strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(from, "/"), ".git"), "/")
	if secureCopy.MatchString(from) {
		from = from[strings.Index(from, ":")+1:]
	}
	from = from[strings.LastIndexAny(from, "/\\")+1:]
	from, _, _ = strings.Cut(from, "@")
	from, _, _ = strings.Cut(from, ":")
	name := strings.Trim(unfit.ReplaceAllString(strings.ToLower(from), "-"), "-")
	name = strings.TrimLeft(name, "-0123456789")
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// maxName is the maximum length of a name, in characters. It leaves room for the suffixes that
// deployments and pods add, because a label value can have at most 63 characters.
const maxName = 58
