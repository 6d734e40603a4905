package login

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// ask prints a prompt and reads a line. It returns fallback for an empty line. At the end of the
// input, it returns fallback or, if fallback is empty, an error.
func ask(streams genericiooptions.IOStreams, input *bufio.Reader, question, fallback string) (string, error) {
	fmt.Fprint(streams.ErrOut, question)
	line, err := input.ReadString('\n')
	if line = strings.TrimSpace(line); line != "" {
		return line, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if fallback == "" && err != nil {
		return "", errors.New("input is required, but there is no terminal")
	}
	return fallback, nil
}

// AskHidden is like ask, but has no fallback and does not echo the input on a terminal.
func AskHidden(streams genericiooptions.IOStreams, input *bufio.Reader, question string) (string, error) {
	file, ok := streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return ask(streams, input, question, "")
	}
	fmt.Fprint(streams.ErrOut, question)
	password, err := term.ReadPassword(int(file.Fd()))
	fmt.Fprintln(streams.ErrOut)
	return string(password), err
}
