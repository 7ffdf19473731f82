package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// obj is a JSON object that is only written.
type obj = map[string]any

// event is one server-sent event; a name is optional.
type event struct {
	name string
	data any // a string is sent as it is
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // The client may be gone.
}

func writeEvents(w http.ResponseWriter, events ...event) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	for _, e := range events {
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		if s, ok := e.data.(string); ok {
			fmt.Fprintf(w, "data: %s\n\n", s)
			continue
		}
		b, err := json.Marshal(e.data)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

// named makes an event whose data repeats its name.
func named(name string, data obj) event {
	data["type"] = name
	return event{name, data}
}

const created = 1_700_000_000 // one time for all: answers depend on the prompt alone

func answerAnthropic(w http.ResponseWriter, r Request) {
	base := obj{
		"id": fmt.Sprintf("msg_mock%d", r.N), "type": "message", "role": "assistant", "model": r.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": obj{"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
	}
	if !r.Stream {
		base["content"] = []any{obj{"type": "text", "text": r.Reply}}
		base["stop_reason"] = "end_turn"
		writeJSON(w, base)
		return
	}
	writeEvents(w,
		named("message_start", obj{"message": base}),
		named("content_block_start", obj{"index": 0, "content_block": obj{"type": "text", "text": ""}}),
		named("content_block_delta", obj{"index": 0, "delta": obj{"type": "text_delta", "text": r.Reply}}),
		named("content_block_stop", obj{"index": 0}),
		named("message_delta", obj{"delta": obj{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": obj{"output_tokens": 5}}),
		named("message_stop", obj{}),
	)
}

func answerResponses(w http.ResponseWriter, r Request) {
	id := fmt.Sprintf("msg_mock%d", r.N)
	item := func(status string, content ...any) obj {
		return obj{"type": "message", "id": id, "role": "assistant", "status": status, "content": append([]any{}, content...)}
	}
	text := func(s string) obj { return obj{"type": "output_text", "text": s, "annotations": []any{}} }
	response := func(status string, output ...any) obj {
		return obj{
			"id": fmt.Sprintf("resp_mock%d", r.N), "object": "response", "created_at": created, "status": status,
			"model": r.Model, "output": append([]any{}, output...), "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
			"usage": obj{
				"input_tokens": 10, "input_tokens_details": obj{"cached_tokens": 0},
				"output_tokens": 5, "output_tokens_details": obj{"reasoning_tokens": 0}, "total_tokens": 15,
			},
		}
	}
	whole := item("completed", text(r.Reply))
	if !r.Stream {
		writeJSON(w, response("completed", whole))
		return
	}
	events := []event{
		named("response.created", obj{"response": response("in_progress")}),
		named("response.output_item.added", obj{"output_index": 0, "item": item("in_progress")}),
		named("response.content_part.added", obj{"item_id": id, "output_index": 0, "content_index": 0, "part": text("")}),
		named("response.output_text.delta", obj{"item_id": id, "output_index": 0, "content_index": 0, "delta": r.Reply}),
		named("response.output_text.done", obj{"item_id": id, "output_index": 0, "content_index": 0, "text": r.Reply}),
		named("response.content_part.done", obj{"item_id": id, "output_index": 0, "content_index": 0, "part": text(r.Reply)}),
		named("response.output_item.done", obj{"output_index": 0, "item": whole}),
		named("response.completed", obj{"response": response("completed", whole)}),
	}
	for n, e := range events {
		e.data.(obj)["sequence_number"] = n
	}
	writeEvents(w, events...)
}

func answerChat(w http.ResponseWriter, r Request) {
	with := func(kind string, choice obj) obj {
		choice["index"] = 0
		return obj{
			"id": fmt.Sprintf("chatcmpl-mock%d", r.N), "object": kind, "created": created, "model": r.Model,
			"choices": []any{choice},
		}
	}
	usage := obj{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !r.Stream {
		v := with("chat.completion", obj{"message": obj{"role": "assistant", "content": r.Reply}, "finish_reason": "stop"})
		v["usage"] = usage
		writeJSON(w, v)
		return
	}
	chunk := func(delta obj, finish any) obj {
		return with("chat.completion.chunk", obj{"delta": delta, "finish_reason": finish})
	}
	last := chunk(obj{}, "stop")
	last["usage"] = usage
	writeEvents(w,
		event{data: chunk(obj{"role": "assistant", "content": ""}, nil)},
		event{data: chunk(obj{"content": r.Reply}, nil)},
		event{data: last},
		event{data: "[DONE]"},
	)
}

func answerGemini(w http.ResponseWriter, r Request) {
	v := obj{
		"candidates": []any{obj{
			"index": 0, "finishReason": "STOP",
			"content": obj{"role": "model", "parts": []any{obj{"text": r.Reply}}},
		}},
		"usageMetadata": obj{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		"modelVersion":  "mock",
	}
	if r.Stream {
		writeEvents(w, event{data: v})
		return
	}
	writeJSON(w, v)
}

// other answers what is no turn. What is not known is told apart from what is empty: 404.
func other(w http.ResponseWriter, h *http.Request) {
	switch p := h.URL.Path; {
	case strings.HasSuffix(p, "/count_tokens"):
		writeJSON(w, obj{"input_tokens": 10})
	case strings.HasSuffix(p, ":countTokens"):
		writeJSON(w, obj{"totalTokens": 10})
	case strings.HasSuffix(p, "/models"):
		// OpenAI's and Anthropic's list in data, codex's own in models.
		writeJSON(w, obj{
			"object":   "list",
			"data":     []any{obj{"id": "mock-model", "object": "model", "type": "model", "display_name": "Mock", "created": created, "created_at": "2023-11-14T22:13:20Z", "owned_by": "mock"}},
			"models":   []any{},
			"has_more": false,
		})
	case p == "/" || h.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"type":"not_found_error","message":"the mock does not know this path"}}`))
	}
}
