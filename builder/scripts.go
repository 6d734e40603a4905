package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/builder/source"
)

// Labels of builder images.
const (
	scriptsLabel, oldScriptsLabel = "io.openshift.s2i.scripts-url", "io.s2i.scripts-url"
	destinationLabel              = "io.openshift.s2i.destination"
	assembleUserLabel             = "io.openshift.s2i.assemble-user"
)

// scripts are where the scripts of source-to-image are in the container.
type scripts struct {
	paths map[string]string
	// own: some are not the image's, and are in the folder of scripts.
	own bool
}

// path is that of a script, empty if there is none.
func (s scripts) path(name string) string { return s.paths[name] }

// findScripts finds each script: where the strategy says, else in the source's .s2i/bin, else where a label of the image says.
func (a *assembly) findScripts(ctx context.Context) (scripts, error) {
	found := scripts{paths: map[string]string{}}
	labels := a.builder.Config.Labels
	for _, name := range []string{"assemble", "run", "save-artifacts"} {
		for _, from := range []string{a.strategy.Scripts, sourceScripts, first(labels[scriptsLabel], labels[oldScriptsLabel])} {
			if from == "" {
				continue
			}
			inside, err := a.script(ctx, from, name)
			if err != nil {
				return found, fmt.Errorf("find script %q: %w", name, err)
			}
			if inside != "" {
				found.paths[name] = inside
				found.own = found.own || inside == a.ownScript(name)
				break
			}
		}
		if found.paths[name] == "" && name != "save-artifacts" {
			return found, fmt.Errorf("find script %q: neither the strategy nor .s2i/bin of the source nor the label %s of image %q has it", name, scriptsLabel, a.strategy.From.Name)
		}
	}
	return found, nil
}

// sourceScripts stands for the directory of the source.
const sourceScripts = "source:.s2i/bin"

// ownScript is where a script that is not the image's goes.
func (a *assembly) ownScript(name string) string { return path.Join(a.destination, "scripts", name) }

// script looks for a script at a URL and returns where it is in the container; empty: it is not there.
func (a *assembly) script(ctx context.Context, from, name string) (string, error) {
	scheme, rest, _ := strings.Cut(from, ":")
	var text []byte
	var err error
	switch scheme {
	case "image":
		return path.Join("/", strings.TrimPrefix(rest, "//"), name), nil
	case "source":
		text, err = readIn(a.context, path.Join(rest, name))
	case "http", "https":
		web := source.Web{Forbidden: a.Git.Forbidden, Proxy: source.Proxy{
			HTTP: a.Variable("HTTP_PROXY"), HTTPS: a.Variable("HTTPS_PROXY"), No: a.Variable("NO_PROXY"),
		}}
		text, err = web.Download(ctx, strings.TrimSuffix(from, "/")+"/"+name)
	default:
		return "", fmt.Errorf("URL %q of scripts begins with none of image:, http: and https:", source.Anonymous(from))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, source.ErrNotThere) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return a.ownScript(name), os.WriteFile(filepath.Join(a.Work, scriptsFolder, name), text, 0o755)
}

// readIn reads a small file of a directory, which links do not lead out of.
func readIn(dir, name string) ([]byte, error) {
	const most = 1 << 20
	file, err := openIn(dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(text) > most {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return text, nil
}

// allowedUser is an error unless the user of a builder image is a number that is allowed, such as "1-" or "0,1000-2000": what a name means is up to the
// image.
func allowedUser(user, allowed string) error {
	number, _, _ := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return fmt.Errorf("its user %q is not a number: give the image a numeric USER, or the label %s", user, assembleUserLabel)
	}
	for part := range strings.SplitSeq(allowed, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		low, lowErr := strconv.ParseUint(first(from, "0"), 10, 32)
		high := low
		var highErr error
		if isRange {
			high, highErr = strconv.ParseUint(first(to, "4294967295"), 10, 32)
		}
		if lowErr == nil && highErr == nil && uid >= low && uid <= high {
			return nil
		}
	}
	return fmt.Errorf("its user %d is not among those allowed (%s): builds do not run as root", uid, allowed)
}

// withGroup is a user with the group root if it is a number alone, which the files of an image need not name.
func withGroup(user string) string {
	if _, err := strconv.ParseUint(user, 10, 32); err == nil {
		return user + ":0"
	}
	return user
}
