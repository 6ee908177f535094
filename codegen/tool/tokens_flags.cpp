// SPDX-License-Identifier: Apache-2.0
#include "tokens_flags.hpp"

namespace rankc::tool {

namespace {

void add_conversations(CLI::App& command, tokens_options& to) {
  CLI::Option* const chat = command.add_option(
      "--chat", to.chat,
      "the files are JSON lines of conversations, {\"messages\": [{\"role\": \"user\", \"content\": TEXT}, "
      "...]}, written by the chat template of a family: " +
          chat_templates() + ". FILE.mask next to FILE.bin marks the tokens that are labels");
  for (const char* const other : {"--eos", "--bos", "--field"}) chat->excludes(command.get_option(other));
  CLI::Option* const loss = command.add_option("--loss", to.loss,
                                               "the labels of a conversation: assistant, its turns with the "
                                               "token that ends each (default); all, every "
                                               "token");
  CLI::Option* const date =
      command.add_option("--date", to.date, "the date that the template gpt-oss states, such as 2025-08-05");
  for (CLI::Option* const option : {loss, date}) option->needs(chat);
}

void add_weights_field(CLI::App& command, tokens_options& to) {
  command.add_option(
      "--weights-field", to.weights_field,
      "write FILE.weights next to FILE.bin, for a plan with .token_weights. With --field this "
      "field of a line is a number, the weight of all tokens of its text. With --chat this "
      "field of a message is the weight of its labels; a message without one takes that of its "
      "line");
}

void add_packing(CLI::App& command, tokens_options& to) {
  CLI::Option* const end = command.add_option(
      "--end-of-document", to.end_of_document,
      "a token behind each text or conversation, as text or number: that of the plan's .end_of_document");
  end->excludes(command.get_option("--eos"));
  CLI::Option* const pack = command.add_option("--pack", to.pack,
                                               "fill sequences of this many tokens, the plan's seq, with "
                                               "whole texts or conversations, by best fit; the "
                                               "rest of a sequence is --end-of-document, and no label");
  pack->check(CLI::Range(2, 1 << 30));
}

}  // namespace

void add_tokens_options(CLI::App& command, tokens_options& to) {
  CLI::Option* const files = command.add_option(
      "files", to.files, "texts, one after the other; those of gzip and zstd are decompressed");
  CLI::Option* const out = command.add_option("--out", to.out, "FILE.bin, in the form of llm.c");
  for (CLI::Option* const option : {files, out}) option->required();
  command.add_option(
      "--model", to.model,
      "tokenizer.json of byte-level BPE, a model of SentencePiece, or a folder of one; default: a "
      "text's bytes are its tokens");
  command.add_flag("--eos", to.ends, "the model's end-of-sentence behind each text");
  command.add_flag("--bos", to.begins, "the model's begin-of-sentence before each text");
  command.add_option("--field", to.field,
                     "the files are JSON lines, each an object with a text in this field; default: a file is "
                     "a text");
  add_conversations(command, to);
  add_weights_field(command, to);
  add_packing(command, to);
  command.footer(
      "Examples:\n"
      "  rankc tokens --out train.bin book.txt letters.txt\n"
      "  rankc tokens --model tokenizer.model --eos --out train.bin *.txt\n"
      "  rankc tokens --model Qwen3-0.6B --eos --field text --out train.bin corpus.jsonl.zst\n"
      "  rankc tokens --model Qwen3-0.6B --chat chatml --pack 4096 --end-of-document '<|endoftext|>' --out "
      "chat.bin chat.jsonl");
}

}  // namespace rankc::tool
