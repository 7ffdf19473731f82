package mockmodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// wire is the part of a request body that is read, of all four protocols. They share no name with
// two meanings.
type wire struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Messages []message       `json:"messages"` // Anthropic, Chat
	Input    json.RawMessage `json:"input"`    // Responses: text, or items
	Contents []content       `json:"contents"` // Gemini
	Tools    []tool          `json:"tools"`
	Config   struct {
		MIME string `json:"responseMimeType"`
	} `json:"generationConfig"`
}

type message struct {
	Type    string          `json:"type"` // Responses: absent or "message" for a message
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"` // of a tool's result
}

// tool is one tool, or gemini's list of them.
type tool struct {
	Functions []json.RawMessage `json:"functionDeclarations"`
}

// fill puts what a body holds into the request.
func (b wire) fill(r *Request) error {
	r.Model, r.Stream = b.Model, b.Stream
	r.JSON = b.Config.MIME == "application/json"
	for _, t := range b.Tools {
		r.Tools += max(1, len(t.Functions))
	}
	items := b.Messages
	var text string
	switch {
	case len(b.Input) == 0:
	case json.Unmarshal(b.Input, &text) == nil:
		r.Messages = append(r.Messages, Message{"user", text})
	default:
		var list []message
		if err := json.Unmarshal(b.Input, &list); err != nil {
			return fmt.Errorf("input: %w", err)
		}
		items = append(items, list...)
	}
	for _, m := range items {
		if m.Role != "" { // not a call, its output, or reasoning
			r.Messages = append(r.Messages, Message{m.Role, textOf(m.Content)})
		}
	}
	for _, c := range b.Contents {
		var s strings.Builder
		for _, p := range c.Parts {
			s.WriteString(p.Text)
		}
		r.Messages = append(r.Messages, Message{c.Role, s.String()})
	}
	return nil
}

// textOf is the text of a content: a string, or parts.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var s strings.Builder
	for _, p := range parts {
		s.WriteString(p.Text)
		if len(p.Content) > 0 {
			s.WriteString(textOf(p.Content))
		}
	}
	return s.String()
}
