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

// Image labels that configure source-to-image builds.
const (
	scriptsLabel, oldScriptsLabel = "io.openshift.s2i.scripts-url", "io.s2i.scripts-url"
	destinationLabel              = "io.openshift.s2i.destination"
	assembleUserLabel             = "io.openshift.s2i.assemble-user"
)

// scripts contains the paths of the source-to-image scripts in the container.
type scripts struct {
	paths map[string]string
	// copied means that some scripts are in scriptsDir instead of the image.
	copied bool
}

// path returns the path of a script, or "" if the script does not exist.
func (s scripts) path(name string) string { return s.paths[name] }

// findScripts finds each script. It checks the strategy's URL, then .s2i/bin in the source, then
// the image's label.
func (a *assembly) findScripts(ctx context.Context) (scripts, error) {
	result := scripts{paths: map[string]string{}}
	labels := a.builder.Config.Labels
	for _, name := range []string{"assemble", "run", "save-artifacts"} {
		for _, from := range []string{a.strategy.Scripts, sourceScripts, first(labels[scriptsLabel], labels[oldScriptsLabel])} {
			if from == "" {
				continue
			}
			file, err := a.script(ctx, from, name)
			if err != nil {
				return result, fmt.Errorf("find script %q: %w", name, err)
			}
			if file != "" {
				result.paths[name] = file
				result.copied = result.copied || file == a.copiedScript(name)
				break
			}
		}
		if result.paths[name] == "" && name != "save-artifacts" {
			return result, fmt.Errorf("find script %q: the scripts URL of the strategy, .s2i/bin in the source and the label %s of image %q do not provide it", name, scriptsLabel, a.strategy.From.Name)
		}
	}
	return result, nil
}

// sourceScripts is the URL of the scripts in the source.
const sourceScripts = "source:.s2i/bin"

// copiedScript returns a script's path in the container, if the build copies the script into the
// image.
func (a *assembly) copiedScript(name string) string { return path.Join(a.destination, "scripts", name) }

// script finds the script with the given name under the URL from, and returns the script's path in
// the container. It returns "" if there is no such script.
func (a *assembly) script(ctx context.Context, from, name string) (string, error) {
	scheme, rest, _ := strings.Cut(from, ":")
	var text []byte
	var err error
	switch scheme {
	case "image":
		return path.Join("/", strings.TrimPrefix(rest, "//"), name), nil
	case "source":
		text, err = readInRoot(a.context, path.Join(rest, name))
	case "http", "https":
		web := source.Web{Forbidden: a.Git.Forbidden, Proxy: source.Proxy{
			HTTP: a.Variable("HTTP_PROXY"), HTTPS: a.Variable("HTTPS_PROXY"), No: a.Variable("NO_PROXY"),
		}}
		text, err = web.Download(ctx, strings.TrimSuffix(from, "/")+"/"+name)
	default:
		return "", fmt.Errorf("URL %q of scripts does not begin with image:, http: or https:", source.Anonymous(from))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, source.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return a.copiedScript(name), os.WriteFile(filepath.Join(a.Work, scriptsDir, name), text, 0o755)
}

// readInRoot reads a small file in a directory. It does not follow symbolic links that lead out of
// the directory.
func readInRoot(dir, name string) ([]byte, error) {
	const maxBytes = 1 << 20
	file, err := openInRoot(dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return text, nil
}

// checkUser returns an error unless the builder image's user is an allowed UID. allowed is a list
// such as "1-" or "0,1000-2000". checkUser also returns an error for a user name, because the image
// determines the UID of a user name.
func checkUser(user, allowed string) error {
	number, _, _ := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return fmt.Errorf("the user %q is not a number: set a numeric USER in the image, or the label %s", user, assembleUserLabel)
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
	return fmt.Errorf("the user %d is not one of the allowed users (%s): set another USER in the image", uid, allowed)
}

// withGroup adds the root group to a numeric user. Without a group, the engine looks up the group
// in the image's files, which might be missing.
func withGroup(user string) string {
	if _, err := strconv.ParseUint(user, 10, 32); err == nil {
		return user + ":0"
	}
	return user
}
