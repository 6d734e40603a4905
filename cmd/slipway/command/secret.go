package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// readSecret prompts for a secret, such as a password, if in is a terminal. Otherwise, it reads one
// line from in.
func readSecret(in io.Reader, out io.Writer, prompt string) (string, error) {
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(out, "%s: ", prompt)
		secret, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(out)
		return string(secret), err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", strings.ToLower(prompt), err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
