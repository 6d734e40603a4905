package newapp

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dockerfile contains the properties of a Dockerfile that determine an application's objects.
type Dockerfile struct {
	// Text is the content of the whole file.
	Text string
	// From is the base image of the last stage. If the last stage is based on an earlier stage,
	// From is the base image of that earlier stage.
	From string
	// Ports lists the ports that the last stage exposes, such as 8080/tcp.
	Ports []string
}

// ReadDockerfile parses the file named Dockerfile in a directory. It returns nil if the file does
// not exist.
func ReadDockerfile(dir string) (*Dockerfile, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Dockerfile: %w", err)
	}
	return ParseDockerfile(string(text))
}

// ParseDockerfile evaluates the FROM, ARG and EXPOSE instructions. It returns an error if there is
// no FROM instruction.
func ParseDockerfile(text string) (*Dockerfile, error) {
	file, stages, arguments := &Dockerfile{Text: text}, map[string]string{}, map[string]string{}
	fill := func(word string) string {
		return os.Expand(word, func(name string) string { return argument(arguments, name) })
	}
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(text, "\\\n", " ")))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "ARG":
			name, value, _ := strings.Cut(words[1], "=")
			arguments[name] = strings.Trim(value, `"'`)
		case "FROM":
			words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "--") })
			if len(words) < 2 {
				continue
			}
			file.From, file.Ports = fill(words[1]), nil
			if base, ok := stages[file.From]; ok {
				file.From = base
			}
			if len(words) > 3 && strings.EqualFold(words[2], "as") {
				stages[words[3]] = file.From
			}
		case "EXPOSE":
			for _, word := range words[1:] {
				if port := fill(word); port != "" {
					file.Ports = append(file.Ports, port)
				}
			}
		}
	}
	if file.From == "" {
		return nil, fmt.Errorf("read Dockerfile: no FROM instruction")
	}
	return file, nil
}

// argument returns the value of an ARG. name is the text of a reference to the ARG: NAME or
// NAME:-DEFAULT.
func argument(arguments map[string]string, name string) string {
	name, otherwise, _ := strings.Cut(name, ":-")
	if value := arguments[name]; value != "" {
		return value
	}
	return otherwise
}
