package record

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// IsSchema1 reports whether a manifest uses Docker's schema 1, which registries stored before 2017.
func IsSchema1(manifest []byte) bool {
	var fields struct {
		Version int `json:"schemaVersion"`
	}
	return json.Unmarshal(manifest, &fields) == nil && fields.Version == 1
}

// DigestOf returns the name of the image with the given manifest, which can use any schema. The
// digest of a schema 1 manifest is the digest of the text that Docker signed: without signatures,
// indented by three spaces.
func DigestOf(manifest []byte) (string, error) {
	if err := (Content{Manifest: manifest}).check(); err != nil {
		return "", err
	}
	if !IsSchema1(manifest) {
		return Digest(manifest), nil
	}
	text, err := unsigned(manifest)
	if err != nil {
		return "", fmt.Errorf("read manifest of Docker's schema 1: %w", err)
	}
	return Digest(text), nil
}

// unsigned returns a JSON object without the "signatures" key, indented by three spaces. The other
// keys keep their order.
func unsigned(manifest []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(manifest))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	text := bytes.NewBufferString("{")
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if key == "signatures" {
			continue
		}
		if text.Len() > 1 {
			text.WriteByte(',')
		}
		fmt.Fprintf(text, "%q:%s", key, value)
	}
	text.WriteByte('}')
	var indented bytes.Buffer
	err := json.Indent(&indented, text.Bytes(), "", "   ")
	return indented.Bytes(), err
}
