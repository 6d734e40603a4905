package builder

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/command"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	corev1 "k8s.io/api/core/v1"
)

// adapt changes a Dockerfile as a BuildConfig asks for: from, if it is given, takes the place of the image that the last stage begins with, and each stage
// begins with the variables of env.
func adapt(dockerfile []byte, from string, env []corev1.EnvVar) ([]byte, error) {
	parsed, err := parser.Parse(bytes.NewReader(dockerfile))
	if err != nil {
		return nil, fmt.Errorf("parse Dockerfile: %w", err)
	}
	var stages []*parser.Node
	for _, node := range parsed.AST.Children {
		if strings.EqualFold(node.Value, command.From) {
			stages = append(stages, node)
		}
	}
	if len(stages) == 0 {
		return nil, errors.New("parse Dockerfile: it has no FROM")
	}
	variables, err := environment(env, parsed.EscapeToken)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(dockerfile), "\n")
	for i, stage := range slices.Backward(stages) {
		text := lines[stage.StartLine-1 : stage.EndLine]
		if i == len(stages)-1 && from != "" {
			text = []string{based(stage, from)}
		}
		lines = slices.Replace(lines, stage.StartLine-1, stage.EndLine, slices.Concat(text, variables)...)
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// based is the instruction of a stage with another image.
func based(stage *parser.Node, image string) string {
	words := append([]string{"FROM"}, stage.Flags...)
	words = append(words, image)
	if stage.Next != nil {
		for word := stage.Next.Next; word != nil; word = word.Next { // AS name
			words = append(words, word.Value)
		}
	}
	return strings.Join(words, " ")
}

// environment is one instruction for each variable.
func environment(env []corev1.EnvVar, escape rune) (lines []string, err error) {
	quote := strings.NewReplacer(string(escape), string(escape)+string(escape), `"`, string(escape)+`"`, "$", string(escape)+"$")
	for _, variable := range env {
		if strings.ContainsAny(variable.Value, "\r\n") || strings.ContainsAny(variable.Name, "\r\n =\"") {
			return nil, fmt.Errorf("variable %q: a Dockerfile's variables are of one line each", variable.Name)
		}
		lines = append(lines, fmt.Sprintf(`ENV %s="%s"`, variable.Name, quote.Replace(variable.Value)))
	}
	return lines, nil
}
