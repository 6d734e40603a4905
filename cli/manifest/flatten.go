package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Flatten replaces lists in JSON or YAML documents with their items, and reports whether it
// replaced any lists. If it cannot parse text, it returns text unchanged, because the caller
// reports a clearer error for it.
func Flatten(text []byte) (flat []byte, changed bool) {
	var written [][]byte
	err := eachDocument(text, func(document []byte, object map[string]any) error {
		if !isList(object) {
			written = append(written, document)
			return nil
		}
		changed = true
		for _, item := range items(object, "items") {
			content, err := yaml.Marshal(item)
			if err != nil {
				return err
			}
			written = append(written, content)
		}
		return nil
	})
	if err != nil || !changed {
		return text, false
	}
	return bytes.Join(written, []byte("\n---\n")), true
}

// HasReview reports whether JSON or YAML documents contain a review, such as a SubjectAccessReview.
// The server responds to reviews but does not store them.
func HasReview(document []byte) (has bool) {
	_ = eachDocument(document, func(_ []byte, object map[string]any) error {
		has = has || strings.HasSuffix(text(object, "kind"), "Review")
		return nil
	})
	return has
}

func isList(object map[string]any) bool {
	return text(object, "apiVersion") == "v1" && text(object, "kind") == "List"
}

// eachDocument calls visit for each document in text, with the document and its object.
func eachDocument(text []byte, visit func(document []byte, object map[string]any) error) error {
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, err := decode(document)
		if err != nil {
			return err
		}
		if err := visit(document, object); err != nil {
			return err
		}
	}
}
