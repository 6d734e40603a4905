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
	// From is the image, image stream or template; empty for source whose builder is to be found.
	From string
	// Kind says what From is, where a flag says so; otherwise it is AnyKind.
	Kind Kind
	// Source is a Git URL or a local directory, or empty.
	Source string
	// Group is the number of the pod that the component's container belongs to; components with the
	// same one share it.
	Group int
}

// Kind is what a component is made from.
type Kind int

// The kinds that flags can say.
const (
	AnyKind Kind = iota
	ImageKind
	StreamKind
	TemplateKind
	FileKind
)

// Arguments sorts the arguments of a command: variables such as KEY=VALUE, and components, where
// image~source is a builder with source and a+b are containers of one pod.
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

// together splits at the plus signs that do not belong to a path or URL.
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

// source is what follows the first ~.
func source(text string) string {
	_, after, _ := strings.Cut(text, "~")
	return after
}

func parse(text string) (Component, error) {
	if IsSource(text) {
		return Component{Source: text}, nil
	}
	from, of, built := strings.Cut(text, "~")
	switch {
	case from == "":
		return Component{}, fmt.Errorf("read %q: name an image before the ~", text)
	case built && of == "":
		return Component{}, fmt.Errorf("read %q: name the source after the ~", text)
	case built && !IsSource(of):
		return Component{}, fmt.Errorf("read %q: %q is neither a Git URL nor a directory", text, of)
	}
	if info, err := os.Stat(from); err == nil && !built && info.Mode().IsRegular() {
		return Component{From: from, Kind: FileKind}, nil
	}
	return Component{From: from, Source: of}, nil
}

// IsSource reports whether an argument is a Git URL or a local directory, with a reference behind #
// or not.
func IsSource(text string) bool {
	if remote.MatchString(text) {
		return true
	}
	path, _, _ := strings.Cut(text, "#")
	info, err := os.Stat(path)
	return err == nil && info.IsDir() && (strings.ContainsAny(path, `/\`) || path == "." || path == "..")
}

// secureCopy is how a repository is named that Git reaches by SSH, such as git@example.com:app.git.
var secureCopy = regexp.MustCompile(`^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^@]*$`)

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// Name makes a name of an object from that of an image or a repository, as short as services need
// it.
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

// maxName leaves room for the suffixes of deployments and their pods within a label of 63
// characters.
const maxName = 58
