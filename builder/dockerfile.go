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

// adapt changes a Dockerfile as a BuildConfig requires. If from is not empty, it replaces the base
// image of the last stage. At the beginning of each stage, it adds the environment variables in
// env.
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
			text = []string{fromInstruction(stage, from)}
		}
		lines = slices.Replace(lines, stage.StartLine-1, stage.EndLine, slices.Concat(text, variables)...)
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// fromInstruction returns the FROM instruction of a stage, with another image.
func fromInstruction(stage *parser.Node, image string) string {
	words := append([]string{"FROM"}, stage.Flags...)
	words = append(words, image)
	if stage.Next != nil {
		for word := stage.Next.Next; word != nil; word = word.Next { // append AS and the name
			words = append(words, word.Value)
		}
	}
	return strings.Join(words, " ")
}

// environment returns an ENV instruction for each environment variable.
func environment(env []corev1.EnvVar, escape rune) (lines []string, err error) {
	quote := strings.NewReplacer(string(escape), string(escape)+string(escape), `"`, string(escape)+`"`, "$", string(escape)+"$")
	for _, variable := range env {
		if strings.ContainsAny(variable.Value, "\r\n") || strings.ContainsAny(variable.Name, "\r\n =\"") {
			return nil, fmt.Errorf("variable %q: the value must be a single line, and the name must not contain special characters, because the variable becomes an ENV instruction of the Dockerfile", variable.Name)
		}
		lines = append(lines, fmt.Sprintf(`ENV %s="%s"`, variable.Name, quote.Replace(variable.Value)))
	}
	return lines, nil
}
