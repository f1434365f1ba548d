"""Uploading a file the way that Slack left: ask for an address, upload, complete.

Called by the Web API under the world's lock; the bytes stay in memory.
"""

from dataclasses import dataclass

from bot.standin.arguments import Arguments
from bot.standin.chat_methods import ChatMethods
from bot.standin.records import (
    BOT_USER,
    Content,
    Payload,
    SlackError,
    StoredFile,
    StoredMessage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMethods:
    """Files of one workspace."""

    chat: ChatMethods

    def upload_url(self, args: Arguments, base: str) -> Payload:
        """`files.getUploadURLExternal`; `base` is where uploads are taken."""
        world = self.chat.world
        length = int(args.text("length"))
        if length <= 0:
            raise SlackError("invalid_arguments")
        file = StoredFile(id=world.new_id("F"), name=args.text("filename"), length=length)
        world.files[file.id] = file
        return {"upload_url": f"{base}{file.id}", "file_id": file.id}

    def receive(self, file_id: str, content: bytes) -> bool:
        """Take the bytes of a file; False when it is unknown or its length is not as told."""
        file = self.chat.world.files.get(file_id)
        if file is None or len(content) != file.length:
            return False
        file.content = content
        return True

    def complete(self, args: Arguments) -> Payload:
        """`files.completeUploadExternal`: shows the files in a channel, if one is named."""
        files = [self._uploaded(entry) for entry in args.json("files")]
        if args.has("channel_id"):
            self._share(files, args)
        return {
            "files": [
                {"id": f.id, "title": f.title, "name": f.name, "size": f.length} for f in files
            ]
        }

    def _uploaded(self, entry: Payload) -> StoredFile:
        file = self.chat.world.files.get(str(entry.get("id")))
        if file is None or file.content is None:
            raise SlackError("file_not_found")
        file.title = str(entry.get("title", file.name))
        return file

    def _share(self, files: list[StoredFile], args: Arguments) -> None:
        world = self.chat.world
        channel = self.chat.writable(args.text("channel_id"))
        message = StoredMessage(
            channel=channel.id,
            ts=world.new_ts(),
            user=BOT_USER,
            revisions=[Content(text=args.text("initial_comment", ""))],
            thread_ts=args.values.get("thread_ts"),
            files=tuple(file.id for file in files),
        )
        world.post(message)
        for file in files:
            file.shared_in = channel.id
