package flexvolume

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// CheckExecutable returns an error if this machine cannot run a file as a driver. This is the case
// if the file is neither a program nor a script, is built for another architecture, or needs an
// interpreter that is not installed. The error contains the reason and the remedy. CheckExecutable
// ignores the file's mode.
func CheckExecutable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("read driver: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("read driver %s: it is not a regular file", file)
	}
	content, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read driver: %w", err)
	}
	defer content.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read driver: %w", err)
	}
	head = head[:n]
	var cause error
	switch {
	case len(head) == 0:
		cause = errors.New("it is empty")
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		cause = checkProgram(content)
	case bytes.HasPrefix(head, []byte("#!")):
		cause = checkInterpreter(head)
	case utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) && !bytes.ContainsRune(head, 0):
		cause = errors.New("a script must begin with a line such as #!/bin/sh")
	default:
		cause = errors.New("it is neither a Linux program nor a script")
	}
	if cause != nil {
		return fmt.Errorf("read driver %s: %w", file, cause)
	}
	return nil
}

// checkProgram checks a program's architecture, and that its dynamic linker exists.
func checkProgram(file io.ReaderAt) error {
	program, err := elf.NewFile(file)
	if err != nil {
		return fmt.Errorf("it is a corrupt program: %w", err)
	}
	if self, err := elf.Open("/proc/self/exe"); err == nil {
		defer self.Close()
		if self.Machine != program.Machine {
			return fmt.Errorf("it is a program for %s and this machine is %s; build it for this machine", program.Machine, self.Machine)
		}
	}
	for _, part := range program.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		linker, err := io.ReadAll(io.LimitReader(part.Open(), 4096))
		if err != nil {
			return fmt.Errorf("it is a corrupt program: %w", err)
		}
		path := strings.TrimRight(string(linker), "\x00")
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("it needs the dynamic linker %s, which is not on this machine; link it statically", path)
		}
	}
	return nil
}

// checkInterpreter checks the first line of a script.
func checkInterpreter(head []byte) error {
	line, _, _ := strings.Cut(string(head[2:]), "\n")
	if strings.HasSuffix(line, "\r") {
		return errors.New("it has Windows line endings, so the kernel looks for an interpreter whose name ends with a carriage return; " +
			"convert it with: sed -i 's/\\r$//'")
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return errors.New("its first line names no interpreter; begin it with a line such as #!/bin/sh")
	}
	interpreter := words[0]
	if info, err := os.Stat(interpreter); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("its interpreter %s is not on this machine; install it or change the first line", interpreter)
	}
	if filepath.Base(interpreter) != "env" {
		return nil
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		if _, err := exec.LookPath(word); err != nil {
			return fmt.Errorf("its interpreter %s is not on this machine; install it or change the first line", word)
		}
		return nil
	}
	return errors.New("its first line names no interpreter after env")
}
