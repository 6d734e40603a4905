package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestPictureKeepsItsFrequentColors(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	picture := image.NewRGBA(image.Rect(0, 0, 200, 2))
	blue := color.RGBA{0, 0, 255, 255}
	for x := range 200 {
		picture.Set(x, 0, blue)
		picture.Set(x, 1, color.RGBA{uint8(x), 0, 0, 255})
	}
	var content bytes.Buffer
	if err := png.Encode(&content, picture); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(from, "a.png"), filepath.Join(from, "other.png"), filepath.Join(to, "a.png")} {
		if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(from, to); err != nil {
		t.Fatal(err)
	}
	small, err := os.ReadFile(filepath.Join(to, "a.png"))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	palette, ok := decoded.(*image.Paletted)
	if !ok || len(palette.Palette) != paletteSize || rgba(decoded.At(7, 0)) != blue {
		t.Errorf("the picture is a %T with the color %v", decoded, decoded.At(7, 0))
	}
	if _, err := os.Stat(filepath.Join(to, "other.png")); err == nil {
		t.Error("the guide gets a picture that it does not show")
	}
}
