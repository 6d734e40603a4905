package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

const (
	// linkDir is the directory for the links. It is in the PATH of every user, and only root can
	// write to it.
	linkDir = "/usr/local/bin"
	// linkRecord is the name of a file in the data directory that lists the created links, one per
	// line. The command creates it as soon as the administrator has answered the prompt, so that it
	// prompts only once.
	linkRecord = "links"
)

// linker creates symbolic links to the programs in a directory that is in PATH.
type linker struct {
	// dataDir contains linkRecord. dir contains the links.
	dataDir, dir string
	// programs maps each link's name to its target.
	programs map[string]string
	in       io.Reader
	out      io.Writer
}

// newLinker returns a linker for the running program and for the oc client, which is either in the
// same directory or the program itself.
func newLinker(dataDir string, in io.Reader, out io.Writer) (linker, error) {
	executable, err := os.Executable()
	if err != nil {
		return linker{}, fmt.Errorf("find this program: %w", err)
	}
	client := filepath.Join(filepath.Dir(executable), "oc")
	if _, err := os.Stat(client); err != nil {
		client = executable
	}
	return linker{dataDir: dataDir, dir: linkDir, programs: map[string]string{"slipway": executable, "oc": client}, in: in, out: out}, nil
}

// offerLinks offers to create the links if stdin and out are terminals.
func offerLinks(dataDir string, out *os.File) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	l, err := newLinker(dataDir, os.Stdin, out)
	if err != nil {
		return err
	}
	return l.offer()
}

// offer asks once whether to create the missing links. It never replaces a file.
func (l linker) offer() error {
	record := filepath.Join(l.dataDir, linkRecord)
	if _, err := os.Stat(record); err == nil {
		return nil
	}
	missing := l.missing()
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(l.out, "Link %s into %s, so that they are in your PATH? [y/N] ", strings.Join(missing, " and "), l.dir)
	reply, err := bufio.NewReader(l.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read reply: %w", err)
	}
	if reply = strings.ToLower(strings.TrimSpace(reply)); reply != "y" && reply != "yes" {
		return os.WriteFile(record, nil, 0o600)
	}
	// Write the record first, so that it lists all links even if this process is killed.
	var links []string
	for _, name := range missing {
		links = append(links, filepath.Join(l.dir, name))
	}
	if err := os.WriteFile(record, []byte(strings.Join(links, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("record links: %w", err)
	}
	for _, name := range missing {
		if err := os.Symlink(l.programs[name], filepath.Join(l.dir, name)); err != nil {
			return fmt.Errorf("link program into the PATH: %w", err)
		}
	}
	return nil
}

// missing returns the names of the programs that are neither in PATH nor in the link directory.
func (l linker) missing() (names []string) {
	for _, name := range []string{"slipway", "oc"} {
		_, err := os.Lstat(filepath.Join(l.dir, name))
		if _, lookErr := exec.LookPath(name); errors.Is(err, fs.ErrNotExist) && lookErr != nil {
			names = append(names, name)
		}
	}
	return names
}

// removeLinks removes the recorded links, but keeps files that have replaced a link.
func removeLinks(dataDir string) error {
	content, err := os.ReadFile(filepath.Join(dataDir, linkRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read link record: %w", err)
	}
	var errs []error
	for path := range strings.FieldsSeq(string(content)) {
		target, err := os.Readlink(path)
		if program := filepath.Base(target); err != nil || program != "slipway" && program != "oc" {
			continue // the link was removed or replaced
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove link: %w", err))
		}
	}
	return errors.Join(errs...)
}
